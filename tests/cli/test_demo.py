"""`harken demo`, in small."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from harken import Engine
from harken.demo import marketplace
from harken.demo import show as demo

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROBOTS": 60, "STREAMED": 120, "INTERVAL": 0.0, "MEASURED_SECONDS": 0.02}.items():
        monkeypatch.setattr(f"harken.demo.presentation.{name}", value)


def shown(**options: object) -> str:
    screen = io.StringIO()
    demo(Console(file=screen, width=80, highlight=False, **options))  # type: ignore[arg-type]
    return screen.getvalue()


def without_times(text: str) -> str:
    return re.sub(r"in [0-9.]+ s\b|[0-9,]+ events(/s|, [0-9,]+ matches)\s*", "", text)


def test_piped_it_tells_the_whole_story_in_plain_text() -> None:
    text = shown()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 84  # the error's own line may be a little longer
    for part in ("Subscriptions", "Offers come in", "goes to", "does not match", "✗ false    price <", "Summary"):
        assert part in text
    assert (
        "write <= for 'less or equal'\n  kind = 'camera' AND price =< 300\n                            ^^" in text
    )
    assert re.search(r"algorithm +\w+", text)


def test_it_shows_the_same_each_time() -> None:
    assert without_times(shown()) == without_times(shown())


def test_on_a_terminal_the_table_is_live_and_ends_the_same() -> None:
    live = shown(force_terminal=True, color_system="truecolor", legacy_windows=False)
    assert "\x1b[?25l" in live  # the cursor is hidden while the table changes
    plain = _ESCAPES.sub("", live)
    for line in ("Maria", "120 offers", "Why not?"):
        assert line in plain


def test_every_wish_is_valid_under_the_schema_and_hears_of_something_or_is_rare() -> None:
    engine = Engine(schema=marketplace.SCHEMA)
    engine.subscribe_many([(wish.id, wish.expression) for wish in marketplace.WISHES])
    heard = engine.match_batch(marketplace.offers(2_000, seed=1)).column("subscription").to_pylist()
    assert set(heard) == {wish.id for wish in marketplace.WISHES}


def test_the_same_seed_makes_the_same_market() -> None:
    assert marketplace.offers(50, seed=3) == marketplace.offers(50, seed=3)
    assert list(marketplace.robots(9, seed=3)) == list(marketplace.robots(9, seed=3))
    assert marketplace.offers(50, seed=3) != marketplace.offers(50, seed=4)
