"""Arguments that several calls take, checked before anything is done with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import Parameter, signature

from harken.errors import ArgumentError, ArgumentTypeError, closest
from harken.model.limits import Limits


def checked_limits(limits: object) -> Limits:
    """Bounds on what one subscription may ask."""
    if not isinstance(limits, Limits):
        raise ArgumentTypeError.of("limits", "a Limits", type(limits).__name__)
    return limits


def checked_count(argument: str, found: object) -> int:
    """A number of things. One of another class than Python's own could not be saved."""
    expected = "a whole number from 0 on"
    if isinstance(found, bool) or not isinstance(found, int):
        raise ArgumentTypeError.of(argument, expected, repr(found))
    if found < 0:
        raise ArgumentError.of(argument, expected, repr(found))
    return found


def checked_number(argument: str, found: object) -> float:
    """A number that is not below 0; it may be infinite."""
    expected = "a number from 0 on"
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ArgumentTypeError.of(argument, expected, repr(found))
    if not found >= 0:  # which NaN is not
        raise ArgumentError.of(argument, expected, repr(found))
    return found


def checked_size(argument: str, found: object) -> int:
    """How many clauses something holds."""
    if not isinstance(found, int) or isinstance(found, bool):
        raise ArgumentTypeError.of(argument, "a number of clauses", type(found).__name__)
    if not 1 <= found < 2**30:
        raise ArgumentError.of(argument, "at least 1 and less than 2 to the 30", f"{found:,}")
    return found


def checked_flag(argument: str, found: object) -> bool:
    """True or False, and nothing that is as good as either: it could not be saved."""
    if not isinstance(found, bool):
        raise ArgumentTypeError.of(argument, "True or False", repr(found))
    return found


def check_several(
    call: str, argument: str, found: object, one: str | None, single: tuple[type, ...] = (str, bytes, Mapping)
) -> None:
    """ArgumentTypeError if what should be several is one, or nothing that can be gone through.

    `one` is the call that there is for one, if there is any. What is `single` could be gone through, a text by
    its letters, but is not meant so.
    """
    passable = hasattr(found, "__iter__") or hasattr(found, "__getitem__")
    if isinstance(found, single) or not passable:
        message = f"{call} takes several {argument}, found {type(found).__name__}"
        raise ArgumentTypeError(message, argument=argument, suggestion=one and f"for one there is {one}")


def check_options(kind: type, where: str, options: Iterable[str]) -> None:
    """ArgumentTypeError if there is no such option."""
    known = [name for name, each in signature(kind).parameters.items() if each.kind is Parameter.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            near = closest(name, known)
            there = f"there are {', '.join(known)}" if known else "there is none"
            suggestion = f"did you mean {near!r}?" if near else None
            raise ArgumentTypeError(
                f"there is no option {name!r} {where}; {there}", argument=name, suggestion=suggestion
            )
