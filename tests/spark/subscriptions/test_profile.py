"""What the attributes of subscriptions are compared with, so that only those travel."""

from __future__ import annotations

from harken.compiler import Texts, compile_texts
from harken.spark.subscriptions.profile import Profile


def test_a_profile_says_of_which_types_constants_are() -> None:
    texts = ["a = 1 or a = 'x'", "b is null", "c within box(0, 0, 1, 1)", "a = 2.5 and d = true", "false"]
    profile = Profile.of(compile_texts(Texts(list(range(5)), texts)).table)
    assert {name: set(types) for name, types in profile.attributes.items()} == {
        "a": {"int", "string", "float"},
        "b": set(),
        "c": {"box"},
        "d": {"bool"},
    }
    assert [profile.geometric(name) for name in "abcd"] == [False, True, True, False]
    assert Profile.from_json(profile.to_json()) == profile
