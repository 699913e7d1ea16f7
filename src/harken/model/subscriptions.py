"""Subscriptions: an expression somebody registered, under an id, for a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from numbers import Integral
from typing import TypeAlias

from harken.errors import ArgumentTypeError, SubscriptionError, ValueOutOfRangeError
from harken.model.expressions import Expression
from harken.model.values import checked_value

SubscriptionId: TypeAlias = str | int
"""A string or a 64-bit integer; one engine holds ids of one of the two."""

_WRITE_ONE = "write a datetime, like datetime(2026, 11, 15, tzinfo=UTC), or in a file 2026-11-15T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Validity:
    """The half-open interval [valid_from, valid_until) in which something holds; None (or NaT) is unbounded."""

    valid_from: datetime | None = None
    valid_until: datetime | None = None

    def __post_init__(self) -> None:
        for field in ("valid_from", "valid_until"):
            moment = getattr(self, field)
            if moment is None:
                continue
            if is_none(moment):
                object.__setattr__(self, field, None)
                continue
            if not isinstance(moment, datetime):
                raise SubscriptionError(
                    f"{field} is a timestamp, found {type(moment).__name__}: {moment!r}",
                    suggestion=_WRITE_ONE,
                )
            try:
                object.__setattr__(self, field, checked_value(moment))
            except ValueOutOfRangeError as error:
                raise SubscriptionError(f"bad {field}: {error}") from None
        if self.valid_from and self.valid_until and self.valid_from >= self.valid_until:
            raise SubscriptionError(f"valid_from {self.valid_from} is not before valid_until {self.valid_until}")

    @property
    def is_always(self) -> bool:
        """Whether there is no bound at all."""
        return self.valid_from is None and self.valid_until is None

    def holds_at(self, moment: datetime) -> bool:
        """Whether the interval includes this moment."""
        after_start = self.valid_from is None or self.valid_from <= moment
        return after_start and (self.valid_until is None or moment < self.valid_until)


ALWAYS = Validity()


def is_none(moment: object) -> bool:
    """Whether there is no moment, as Python says it or pandas does: None, NaT, NaN or NA."""
    if moment is None or type(moment).__name__ == "NAType":
        return True
    try:
        return bool(moment != moment)
    except Exception:  # whatever cannot even be compared with itself is something else
        return False


def moment_of(at: datetime | None) -> datetime:
    """A moment in UTC: the one given (naive ones are read as UTC), or the present one."""
    if at is None:
        return datetime.now(UTC)
    if not isinstance(at, datetime) or at != at:  # NaT is a datetime that equals none
        raise ArgumentTypeError(
            f"at is a timestamp, found {type(at).__name__}: {at!r}", argument="at", suggestion=_WRITE_ONE
        )
    return checked_value(at)  # type: ignore[return-value]  # a timestamp comes back as one


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing condition: who asked for what, and when it holds."""

    id: SubscriptionId
    expression: Expression
    owner: str | None = None
    validity: Validity = ALWAYS


def checked_owner(value: object) -> str | None:
    """The owner as given, or an error that says what an owner may be."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise SubscriptionError(f"an owner is a string, found {type(value).__name__}")
    try:
        return checked_value(value)  # type: ignore[return-value]  # a string comes back as one
    except ValueOutOfRangeError as error:
        raise SubscriptionError(f"bad owner: {error}") from None


def checked_id(value: object) -> SubscriptionId:
    """The id as given, or an error that says what an id may be."""
    if not isinstance(value, str | int) and isinstance(value, Integral):
        value = int(value)  # of numpy
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise SubscriptionError(f"a subscription id is a string or an integer, found {type(value).__name__}")
    try:
        checked = checked_value(value)
    except ValueOutOfRangeError as error:
        raise SubscriptionError(f"bad subscription id: {error}") from None
    if checked == "":
        raise SubscriptionError("a subscription id cannot be the empty string")
    return checked  # type: ignore[return-value]  # str and int come back as themselves
