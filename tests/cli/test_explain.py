"""`harken explain`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import run

EVENT = '{"item": "camera", "price": 320}'


def test_each_part_is_shown_with_its_truth_and_the_value_it_saw(subscriptions: Path) -> None:
    done = run("explain", "-s", subscriptions, "--id", "ann", "--event", EVENT)
    assert done.status == 0
    assert done.out.splitlines() == [
        "'ann' does not match",
        "  ✗ false    all of",
        "    ✓ true     item = 'camera'   [item is 'camera']",
        "    ✗ false    price < 300   [price is 320]",
    ]


def test_a_match_has_the_same_exit_status(subscriptions: Path) -> None:
    done = run("explain", "-s", subscriptions, "--id", "bob", "--event", EVENT)
    assert (done.status, done.out.splitlines()[0]) == (0, "'bob' matches")


def test_the_explanation_can_be_had_as_json(subscriptions: Path) -> None:
    said = json.loads(run("explain", "-s", subscriptions, "--id", "ann", "--event", EVENT, "--json").out)
    assert (said["subscription"], said["matches"]) == ("ann", False)
    assert [part["truth"] for part in said["expression"]["parts"]] == ["true", "false"]


def test_the_event_may_stand_in_a_file_or_come_from_standard_input(subscriptions: Path, tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text(EVENT)
    from_file = run("explain", "-s", subscriptions, "--id", "bob", "--event", f"@{path}")
    from_input = run("explain", "-s", subscriptions, "--id", "bob", "--event", "@-", given=EVENT)
    assert from_file.out == from_input.out != ""


def test_integer_ids_are_found_and_a_time_and_a_schema_can_be_given(tmp_path: Path) -> None:
    subscriptions, schema = tmp_path / "s.csv", tmp_path / "schema.json"
    subscriptions.write_text("id,expression,valid_until\n7,day > DATE '2026-01-01',2026-02-01\n")
    schema.write_text('{"day": "date"}')
    arguments = ("explain", "-s", subscriptions, "--id", "7", "--event", '{"day": "2026-01-02"}')
    assert "7 matches" in run(*arguments, "--schema", schema, "--at", "2026-01-15").out
    late = run(*arguments, "--schema", schema, "--at", "2026-02-01")
    assert "7 does not match" in late.out
    assert "note: not valid at this time" in late.out


def test_other_bad_subscriptions_do_not_stand_in_the_way(bad_subscriptions: Path) -> None:
    done = run("explain", "-s", bad_subscriptions, "--id", "4", "--event", "{}")
    assert done.status == 0
    assert "note: this expression contradicts itself" in done.out
    assert "passed over: " in done.err


def test_a_bad_subscription_is_an_error(bad_subscriptions: Path) -> None:
    done = run("explain", "-s", bad_subscriptions, "--id", "2", "--event", "{}")
    assert (done.status, done.out) == (2, "")
    assert f"error: {bad_subscriptions}:2 2 2:11 the expression ends too early" in done.err


def test_an_unknown_id_is_an_error_that_names_the_nearest(subscriptions: Path) -> None:
    done = run("explain", "-s", subscriptions, "--id", "anne", "--event", "{}")
    assert (done.status, done.err) == (
        2,
        f"error: {subscriptions}: there is no subscription 'anne'; did you mean 'ann'?\n",
    )


def test_an_event_that_is_none_is_an_error(subscriptions: Path) -> None:
    for event in ("{price: 1}", "[]", '{"": 1}', "@absent.json", '{"price": 1, "price": 2}'):
        done = run("explain", "-s", subscriptions, "--id", "ann", "--event", event)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("error: ")
