"""The contract between the engine and a matching algorithm.

The engine checks input, owns ids, owners and validity, and gives each subscription a **slot**: a small
integer that is free to be reused after removal. A matcher knows only slots and what they stand for.

Laws that every matcher obeys (tests/contract checks them for all that are registered): it agrees with the
reference; a batch gives what a loop gives; the order of additions is irrelevant; adding and removing leaves
no trace; saving and loading neither; removing one subscription never disturbs another; whatever step of a change
fails, the subscriptions that it does not concern can be rescued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Protocol, Self, TypeAlias, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.locking import Door
from harken.matching.events.batch import EventBatch
from harken.matching.events.mentions import Mentions
from harken.matching.parallel.options import Parallel
from harken.matching.saving import State
from harken.model.events import Event, FlatEvent
from harken.model.expressions import Expression
from harken.model.limits import Limits
from harken.normal.compiled import CompiledBuilder
from harken.normal.form import NormalForm, normalise
from harken.portions import Pace, Portions

Slots: TypeAlias = npt.NDArray[np.int64]
Pairs: TypeAlias = tuple[npt.NDArray[np.int64], Slots]
"""Matches of a batch: the event's row and the subscription's slot, pair by pair, events ascending."""

Stats: TypeAlias = Mapping[str, object]

NO_SLOTS: Slots = np.zeros(0, np.int64)

_UNBOUNDED = Limits(max_clauses=2**31, max_work=2**62)


@dataclass(frozen=True, slots=True)
class AccessPath:
    """How events find a clause: what must hold of one for the clause to be looked at, and with how many others."""

    condition: Expression
    neighbours: int


class Incoming:
    """Subscriptions about to be added, as expressions or in compiled form: whichever a matcher reads.

    Both are made only when asked for. Subscription i of either goes to the i-th slot. Of a few, normal forms may
    be known too: to read them takes less time than to make a table.
    """

    def __init__(
        self,
        expressions: Callable[[], Sequence[Expression]],
        compiled: Callable[[], pa.Table],
        forms: Sequence[NormalForm] | None = None,
    ) -> None:
        self._make_expressions = expressions
        self._make_compiled = compiled
        self.forms = forms
        self.leaving = 0
        """How many subscriptions these are to replace: they leave once these have come."""

    def __len__(self) -> int:
        return self.compiled.num_rows if self.forms is None else len(self.forms)

    @classmethod
    def of(cls, expressions: Sequence[Expression]) -> Incoming:
        """Subscriptions known by their expressions, which have been held to all limits before."""
        return cls(lambda: expressions, partial(_compiled, expressions))

    @property
    def clauses(self) -> int:
        """How many clauses come."""
        if self.forms is not None:
            return sum(len(form.clauses) for form in self.forms)
        return sum(len(chunk.values) for chunk in self.compiled.column("clauses").chunks)

    def part(self, part: slice) -> Incoming:
        """Some of them."""
        if part.stop - part.start == len(self):
            return self
        table = self.compiled.slice(part.start, part.stop - part.start)
        return Incoming(lambda: self.expressions[part], lambda: table)

    @cached_property
    def expressions(self) -> Sequence[Expression]:
        """The expression trees, as written where they were written."""
        return self._make_expressions()

    @cached_property
    def compiled(self) -> pa.Table:
        """The table described in docs/compiled-form.md."""
        return self._make_compiled()


def _compiled(expressions: Sequence[Expression]) -> pa.Table:
    return _table_of(normalise(expression, _UNBOUNDED) for expression in expressions)


def _table_of(forms: Iterable[NormalForm]) -> pa.Table:
    builder = CompiledBuilder()
    for at, form in enumerate(forms):
        builder.add(at, form)
    return builder.finish()


class Matcher(Protocol):
    """A matching algorithm. Unless its own documentation says more, calls must not run at the same time."""

    def prepare(self, incoming: Incoming) -> None:
        """Have read what `add` will want of subscriptions; CapacityError if they are more than can be numbered.

        Changes nothing; others may match meanwhile.
        """

    def foresee(self) -> None:
        """Find out whether the next change has to arrange all anew. In turn with changes; others may match."""

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """Take in subscriptions under slots that are not in use."""

    def remove(self, slots: Slots) -> None:
        """Forget the subscriptions of these slots, all of which are in use."""

    def match(self, event: FlatEvent) -> Slots:
        """The slots whose subscriptions the event satisfies, in any order, each once."""

    def match_batch(self, events: EventBatch) -> Pairs:
        """All matches of all events of a batch."""

    @property
    def attributes(self) -> Mentions:
        """The attributes that some subscription mentions."""

    def expression(self, slot: int) -> Expression:
        """What the subscription of this slot asks for, as it is known here."""

    def access(self, slot: int) -> Sequence[AccessPath]:
        """How events find the clauses of this slot's subscription; none if all are looked at for every event."""

    def stats(self) -> Stats:
        """What the algorithm holds and has done, for people to read."""

    def rescue(self, broken: Self, slots: Slots) -> None:
        """Hold what another of the same algorithm and options holds under these slots. Only if empty.

        `add`, `remove` or `learn` of the other one has failed in the middle, at any step, and no matter what it is
        good for now, these subscriptions can be told from it: they were whole before, and none was to be removed.
        """


@runtime_checkable
class Saveable(Protocol):
    """A matcher that can be saved as it is. Others are saved, and all are exchanged, through expressions."""

    def state(self) -> State | None:
        """All that it holds, or None while its expressions say that well enough."""

    def restore(self, state: State, slots: Slots) -> None:
        """Hold what another one held, made with the same options, when it gave its state. Only if empty.

        `slots` are those in use, ascending. Nothing of the state is believed: ValueError, or another of
        `saving.DAMAGE`, if it is not one that the next call can work with.
        """


@runtime_checkable
class InParallel(Protocol):
    """A matcher whose batches several threads can match."""

    def check_parallel(self, parallel: Parallel) -> None:
        """ArgumentError if several threads cannot match so."""

    def match_batch_in_parallel(self, events: EventBatch, parallel: Parallel, door: Door | None = None) -> Pairs:
        """As `match_batch`, by threads that all enter the door that this one has entered."""


@runtime_checkable
class Reading(Protocol):
    """A matcher that checks events while it reads them. Flat ones, as most are, need not be walked twice then."""

    def match_unchecked(self, event: Event) -> Slots | None:
        """As `match`, or None unless the event is plainly flat: who asks checks it then, and comes again.

        That is as if it had not been asked. No code of anybody else is run.
        """

    def flat_until(self, events: list[Event], row: int) -> int:
        """The row from a row on up to which all events are flat, as far as can be seen quickly."""


@runtime_checkable
class Gradual(Protocol):
    """A matcher that can be changed portion by portion, and matched with between any two of them.

    What has come or gone so far is then found or not, as it may be: who asks sees to it that nobody is told.
    Should a portion fail, whatever is not concerned can be rescued, as after `add`, `remove` and `learn`.
    """

    def rehearse(self) -> None:
        """Have ready what changes are made with, once in a process: it may have to be loaded, or compiled."""

    def add_in_portions(self, slots: Slots, incoming: Incoming, pace: Pace) -> Portions:
        """As `add`, but for what is to be arranged anew afterwards."""

    def remove_in_portions(self, slots: Slots, pace: Pace) -> Portions:
        """As `remove`, but for what is to be arranged anew afterwards."""

    def learn_in_portions(self, events: EventBatch, pace: Pace) -> Portions:
        """As `learn` does."""

    def arrange_in_portions(self, coming: int, leaving: int, pace: Pace) -> Portions:
        """Arrange anew what has to be after so many have come and gone."""


def is_gradual(matcher: Matcher) -> TypeGuard[Gradual]:
    """Whether a matcher can be changed portion by portion."""
    return _are_gradual(type(matcher))


@cache
def _are_gradual(kind: type) -> bool:
    return issubclass(kind, Gradual)  # which takes as long as a small change


@runtime_checkable
class Arranging(Protocol):
    """A matcher that may want to become another one, though nobody changes anything."""

    is_due: bool
    """Whether it is time to `arrange`. Whoever takes care of it says so."""

    def arrange(self) -> None:
        """Get ready for what `learn` of no events is to do then. In turn with changes; others may match."""


@runtime_checkable
class Learning(Protocol):
    """A matcher that arranges itself for the events it is shown."""

    def learn(self, events: EventBatch) -> None:
        """See what events look like, and choose access paths for them; after an EventError all is as before."""


def in_order(pairs: Pairs, parallel: Parallel) -> Pairs:
    """Matches of several events, in the order in which threads tell them that share their work so."""
    if parallel.mode == "me-ip":
        return pairs
    rows, slots = pairs
    order = np.lexsort((slots, rows))
    return rows[order], slots[order]
