"""Every error Harken raises, under one root.

Leaves also inherit the natural builtin, so `except ValueError` keeps working in code that does not
know Harken. Facts are fields, not only words, so that programs (a reject table, an HTTP response, an
editor) can use them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Position:
    """Where in a text something is: line and column count from 1, offset from 0."""

    line: int
    column: int
    offset: int

    @classmethod
    def at(cls, text: str, offset: int) -> Position:
        """The position of a character offset in a text."""
        before = text[:offset]
        return cls(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1, offset)

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate a person most likely meant by a misspelt name, if any comes near."""
    options = list(candidates)
    folded = {option.lower(): option for option in options}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


class HarkenError(Exception):
    """The root of all errors raised by Harken.

    `suggestion` is what the user may have meant or can do, when there is something to say.
    """

    def __init__(self, message: str, *, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion

    def __str__(self) -> str:
        return f"{self.message}; {self.suggestion}" if self.suggestion else self.message


class ExpressionError(HarkenError, ValueError):
    """An expression that cannot be accepted; the leaves below say why."""

    position: Position | None = None


class ParseError(ExpressionError):
    """A text that is not an expression: where, what was found and what was expected."""

    def __init__(
        self,
        message: str,
        *,
        text: str,
        position: Position,
        width: int = 1,
        found: str | None = None,
        expected: tuple[str, ...] = (),
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message, suggestion=suggestion)
        self.position: Position = position
        self.width = width
        self.found = found
        self.expected = expected
        self.context = _caret(text, position, width)

    def __str__(self) -> str:
        return f"{self.position}: {super().__str__()}\n{self.context}"


def _caret(text: str, position: Position, width: int, reach: int = 60) -> str:
    """The offending line, cut to a readable length, with carets below the offending part."""
    line = text.split("\n")[position.line - 1]
    at = position.column - 1
    start = max(0, at - reach)
    end = min(len(line), at + reach)
    head, tail = "…" if start else "", "…" if end < len(line) else ""
    shown = "".join(char if char.isprintable() else " " for char in line[start:end])
    carets = "^" * max(1, min(width, end - at))
    return f"  {head}{shown}{tail}\n  {' ' * (at - start + len(head))}{carets}"


class BoundError(ExpressionError):
    """An expression past one of the configured limits; `bound` names the limit."""

    def __init__(self, bound: str, limit: int, found: str, *, suggestion: str | None = None) -> None:
        super().__init__(f"{found}, but {bound} allows {limit:,}", suggestion=suggestion)
        self.bound = bound
        self.limit = limit


class SchemaError(ExpressionError, TypeError):
    """A value or constant of another type than the schema declares, or an attribute it has not."""

    def __init__(
        self,
        message: str,
        *,
        attribute: str,
        expected: str | None = None,
        found: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message, suggestion=suggestion)
        self.attribute = attribute
        self.expected = expected
        self.found = found

    @classmethod
    def unknown_attribute(cls, attribute: str, known: Iterable[str]) -> SchemaError:
        """An attribute the schema does not declare, with the nearest name that it does."""
        near = closest(attribute, known)
        return cls(
            f"the schema has no attribute {attribute!r}",
            attribute=attribute,
            suggestion=f"did you mean {near!r}?" if near else None,
        )

    @classmethod
    def wrong_type(cls, attribute: str, expected: str, found: str) -> SchemaError:
        """A value or constant of a type the schema does not allow for its attribute."""
        return cls(
            f"attribute {attribute!r} is declared {expected}, found {found}",
            attribute=attribute,
            expected=expected,
            found=found,
        )


class ValueOutOfRangeError(ExpressionError):
    """A constant or event value outside what its type can hold (2^63, NaN, a lone surrogate)."""


class ValueTypeError(ExpressionError, TypeError):
    """A value of a class that the language has no type for (None, a list)."""


class EventError(HarkenError, ValueError):
    """An event that cannot be matched: `attribute` and, in a batch, `row` say where, `value` what stands there.

    `event` is what the event is called, where that is known.
    """

    def __init__(
        self,
        message: str,
        *,
        attribute: str | None = None,
        row: int | None = None,
        value: str | None = None,
        event: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message, suggestion=suggestion)
        self.attribute = attribute
        self.row = row
        self.value = value
        self.event = event

    @property
    def reason(self) -> str:
        """What is wrong, in one line that does not say with which event."""
        return " ".join(super().__str__().split())

    def __str__(self) -> str:
        called = self.row if self.event is None else self.event
        where = f"event {called}: " if called is not None else ""
        return where + super().__str__()


class SubscriptionError(HarkenError, ValueError):
    """A subscription that cannot be registered for a reason other than its expression."""


class DuplicateSubscriptionError(SubscriptionError):
    """The id is taken, and it was not said that what has it should give way."""

    def __init__(
        self,
        subscription: str | int,
        said: str = "is already registered",
        suggestion: str = "pass replace=True to put the new expression in its place",
    ) -> None:
        super().__init__(f"subscription {subscription!r} {said}", suggestion=suggestion)
        self.subscription = subscription


class Rejected(Protocol):
    """What a bulk load says about a row it did not take."""

    @property
    def row(self) -> int:
        """The row's number in the input, from 0."""

    @property
    def reason(self) -> str:
        """What is wrong, in one line."""


class BulkLoadError(SubscriptionError):
    """A bulk load of which nothing was taken, because some rows could not be; `rejects` has them all."""

    def __init__(
        self,
        rejects: Sequence[Rejected],
        said: str | None = None,
        suggestion: str = 'pass on_error="collect" to load the others',
    ) -> None:
        first = rejects[0]
        before = said or f"{len(rejects):,} rejected, the first is row {first.row}:"
        super().__init__(f"nothing was loaded: {before} {first.reason}", suggestion=suggestion)
        self.rejects = tuple(rejects)


class EngineBusyError(HarkenError, RuntimeError):
    """A call from within another call of the same thread on the same engine, which cannot be served there.

    No function that Harken calls, a progress callback or a generator of rows, is in such a place: what remains are
    signal handlers, finalisers, and mappings of one's own that change the engine while it reads them.
    """


class UnknownSubscriptionError(HarkenError, KeyError):
    """No subscription of that id is registered."""

    def __init__(self, subscription: str | int) -> None:
        super().__init__(f"no subscription {subscription!r} is registered")
        self.subscription = subscription


class UnknownNameError(HarkenError, LookupError):
    """A name that nothing is registered under; the leaves say what was looked for."""

    what = "name"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        near = closest(name, names) if isinstance(name, str) else None
        super().__init__(
            f"no {self.what} {name!r}; there are {', '.join(names)}",
            suggestion=f"did you mean {near!r}?" if near else None,
        )


class UnknownAlgorithmError(UnknownNameError):
    """No matching algorithm of that name."""

    what = "algorithm"


class UnknownWorkloadError(UnknownNameError):
    """No workload of that name."""

    what = "workload"


class UnknownExperimentError(UnknownNameError):
    """No experiment of that name."""

    what = "experiment"


class InputFileError(HarkenError, ValueError):
    """A file that cannot be read as what it should be; `path` and, where known, `line`."""

    def __init__(self, path: str, message: str, *, line: int | None = None, suggestion: str | None = None) -> None:
        where = f"{path}, line {line}" if line is not None else path
        super().__init__(f"{where}: {message}", suggestion=suggestion)
        self.path = path
        self.line = line


class EmptyFileError(InputFileError):
    """A file with nothing in it, where at least a header was expected."""


class CapacityError(HarkenError, OverflowError):
    """More of something than an index can number: `what`, how much was `wanted`, and the `limit`."""

    def __init__(self, what: str, wanted: int, limit: int, *, suggestion: str | None = None) -> None:
        super().__init__(f"{wanted:,} {what}, but an index can number {limit:,}", suggestion=suggestion)
        self.what = what
        self.wanted = wanted
        self.limit = limit


class IndexFormatError(HarkenError, ValueError):
    """A saved engine that is damaged, incomplete or written by an incompatible version."""


class MissingExtraError(HarkenError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra {extra!r}", suggestion=f"pip install 'harken[{extra}]'")
        self.extra = extra


class ConcurrentChangeError(HarkenError, RuntimeError):
    """Another writer changed the same storage at the same time, and was first; nothing of this change is kept."""

    def __init__(self, folder: str, version: int) -> None:
        super().__init__(
            f"version {version} of {folder} was written by somebody else meanwhile",
            suggestion="read it and try again",
        )
        self.version = version


class UnknownVersionError(HarkenError, LookupError):
    """Storage has no such version: never had, or no longer."""

    def __init__(self, folder: str, version: int, latest: int | None) -> None:
        known = "it is empty" if latest is None else f"the latest is {latest}"
        super().__init__(f"{folder} has no version {version}; {known}")
        self.version = version
        self.latest = latest


class StorageError(HarkenError, OSError):
    """A store cannot be reached, is not supported, or does not do what it should."""


class JavaError(HarkenError, RuntimeError):
    """Spark cannot run: there is no Java, or it is too old."""


class SinkError(HarkenError, ValueError):
    """Matches that a sink cannot take, or a place that it cannot write to."""


class StreamError(HarkenError, RuntimeError):
    """A stream that cannot go on as it is: its checkpoint is not what it was, or a batch is not to be repeated."""


class WorkerPythonError(HarkenError, RuntimeError):
    """Spark's workers run a Python that cannot do what this one can: the message says which, and what to set."""


class OutputExistsError(HarkenError, FileExistsError):
    """Something is already where output was to go; it was left as it is."""

    def __init__(self, path: str, suggestion: str = "remove it, or write somewhere else") -> None:
        super().__init__(f"{path} exists", suggestion=suggestion)
        self.path = path


class DatabaseError(HarkenError, RuntimeError):
    """A database that cannot be reached, or that refused: `attempted` says what, `where` says which.

    Neither ever holds a password.
    """

    def __init__(self, attempted: str, where: str, reason: str) -> None:
        super().__init__(f"could not {attempted} ({where}): {reason}")
        self.attempted = attempted
        self.where = where


class TaskError(HarkenError, RuntimeError):
    """A Spark job failed: what went wrong in one of its tasks, or what Spark had to say, in one line."""


class ConstraintError(ExpressionError):
    """A constraint that symmetric matching cannot intersect with others; `attribute` says of what."""

    def __init__(self, message: str, *, attribute: str, suggestion: str | None = None) -> None:
        super().__init__(message, suggestion=suggestion)
        self.attribute = attribute

    @classmethod
    def absence(cls, attribute: str) -> ConstraintError:
        """IS NULL, which no value satisfies."""
        return cls(
            f"IS NULL on {attribute!r} allows no value, and values are what is matched", attribute=attribute
        )

    @classmethod
    def pattern(cls, attribute: str) -> ConstraintError:
        """A pattern of which nobody can say whether another one meets it."""
        return cls(
            f"the pattern on {attribute!r} cannot be intersected with other constraints",
            attribute=attribute,
            suggestion="prefixes (STARTS WITH, LIKE 'abc%'), ranges and IN can",
        )

    @classmethod
    def digits(cls, attribute: str, number: object) -> ConstraintError:
        """A decimal that no 64-bit number says."""
        return cls(
            f"on {attribute!r}: symmetric matching compares 64-bit numbers, and none is exactly {number}",
            attribute=attribute,
            suggestion="write at most 15 digits",
        )

    @classmethod
    def avoidance(cls, attribute: str) -> ConstraintError:
        """A negated spatial relation."""
        return cls(
            f"on {attribute!r}: shapes can be asked to overlap, contain or lie within others, but not NOT to",
            attribute=attribute,
        )


class ArgumentError(HarkenError, ValueError):
    """An argument of a call that cannot be: `argument` says which."""

    def __init__(self, message: str, *, argument: str, suggestion: str | None = None) -> None:
        super().__init__(message, suggestion=suggestion)
        self.argument = argument

    @classmethod
    def of(cls, argument: str, expected: str, found: object) -> ArgumentError:
        """What it should have been, and what it was."""
        return cls(f"{argument} is {expected}, found {found}", argument=argument)

    @classmethod
    def choice(cls, argument: str, found: object, known: Sequence[str]) -> ArgumentError:
        """A word that is none of those there are, with the nearest one."""
        near = closest(found, known) if isinstance(found, str) else None
        kind = cls if isinstance(found, str) else ArgumentTypeError
        message = f"{argument} is one of {', '.join(map(repr, known))}, found {found!r}"
        return kind(message, argument=argument, suggestion=f"did you mean {near!r}?" if near else None)


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a class that the call does not take."""


class CopyError(HarkenError, TypeError):
    """Something that cannot be copied or pickled; the suggestion says what to do instead."""

    def __init__(self, what: str, suggestion: str) -> None:
        super().__init__(f"{what} is not copied or pickled", suggestion=suggestion)


class ClosedError(HarkenError, RuntimeError):
    """A call on an engine, an auction or a store that was closed."""

    def __init__(self, attempted: str) -> None:
        super().__init__(f"could not {attempted}: it was closed", suggestion="open it anew")
        self.attempted = attempted


class UnknownPublicationError(UnknownSubscriptionError):
    """No publication of that id is kept."""

    def __init__(self, publication: str | int) -> None:
        HarkenError.__init__(self, f"no publication {publication!r} is kept")
        self.subscription = publication


class DuplicatePublicationError(DuplicateSubscriptionError):
    """The id of a publication is taken, and `replace=True` was not said."""

    def __init__(self, publication: str | int) -> None:
        HarkenError.__init__(
            self,
            f"publication {publication!r} is kept already",
            suggestion="pass replace=True to put the new one in its place",
        )
        self.subscription = publication


class UnknownEntryError(UnknownSubscriptionError):
    """An auction has no offer, or no bid, of that id."""

    def __init__(self, role: str, id: str) -> None:
        HarkenError.__init__(self, f"there is no {role} {id!r}")
        self.subscription = id


class DuplicateEntryError(DuplicateSubscriptionError):
    """The id of an offer, or of a bid, is taken."""

    def __init__(self, role: str, id: str) -> None:
        article = "an" if role[:1] in "aeiou" else "a"
        HarkenError.__init__(self, f"there is {article} {role} {id!r} already", suggestion="withdraw it first")
        self.subscription = id


class HandlerError(HarkenError, TypeError):
    """Something that cannot be told of notices."""

    @classmethod
    def not_callable(cls, found: object) -> HandlerError:
        """No function at all."""
        return cls(f"a handler is a function that takes a notice, found {type(found).__name__}")

    @classmethod
    def is_async(cls) -> HandlerError:
        """A coroutine, which `deliver` would settle without awaiting it."""
        return cls("an async handler has to be awaited", suggestion="use `await deliver_async(handler)`")
