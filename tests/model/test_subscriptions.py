"""Subscriptions: ids, and the half-open interval in which one holds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from harken.errors import SubscriptionError
from harken.model.limits import Limits
from harken.model.subscriptions import ALWAYS, Validity, checked_id, moment_of

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("id", ["a", " ", "ä", "0", 0, -1, 2**63 - 1, -(2**63)])
def test_a_string_or_a_64_bit_integer_is_an_id(id):
    assert checked_id(id) == id


@pytest.mark.parametrize("id", [True, False, 1.0, None, "", b"a", (1,), 2**63, -(2**63) - 1, "\ud800"])
def test_nothing_else_is_an_id(id):
    with pytest.raises(SubscriptionError, match="id"):
        checked_id(id)


def test_validity_includes_its_start_and_excludes_its_end():
    validity = Validity(NOON, NOON + HOUR)
    tick = timedelta(microseconds=1)
    assert not validity.holds_at(NOON - tick)
    assert validity.holds_at(NOON)
    assert validity.holds_at(NOON + HOUR - tick)
    assert not validity.holds_at(NOON + HOUR)


def test_an_open_end_is_unbounded():
    assert Validity(NOON, None).holds_at(datetime.max.replace(tzinfo=UTC))
    assert Validity(None, NOON).holds_at(datetime.min.replace(tzinfo=UTC))
    assert ALWAYS.is_always
    assert not Validity(NOON).is_always


def test_bounds_are_brought_to_utc_and_naive_ones_are_read_as_utc():
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5)))
    assert Validity(elsewhere).valid_from == NOON
    assert repr(Validity(elsewhere)) == repr(Validity(NOON.replace(tzinfo=None)))


@pytest.mark.parametrize(("start", "end"), [(NOON, NOON), (NOON + HOUR, NOON)])
def test_an_interval_that_holds_nothing_is_refused(start, end):
    with pytest.raises(SubscriptionError, match="is not before"):
        Validity(start, end)


@pytest.mark.parametrize("moment", [date(2026, 1, 1), "2026-01-01", 0])
def test_a_bound_is_a_timestamp(moment):
    with pytest.raises(SubscriptionError, match="valid_from is a timestamp"):
        Validity(moment)


@pytest.mark.parametrize("field", ["valid_from", "valid_until"])
def test_a_bound_outside_the_calendar_is_refused_like_any_other_bad_bound(field):
    with pytest.raises(SubscriptionError, match=field):
        Validity(**{field: datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))})


def test_a_moment_is_brought_to_utc_and_none_is_the_present():
    assert repr(moment_of(NOON.replace(tzinfo=None))) == repr(NOON)
    assert repr(moment_of(NOON.astimezone(timezone(timedelta(hours=5))))) == repr(NOON)
    assert moment_of(None).utcoffset() == timedelta(0)


def test_limits_have_the_documented_defaults():
    assert Limits() == Limits(max_length=262_144, max_depth=100, max_clauses=256, max_pattern=4_096)
