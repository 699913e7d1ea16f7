"""Changes of an engine, each of which is made as a whole or not at all, whatever fails on the way.

A change has two phases. It is **prepared**: parsed, compiled, checked, given slots; that changes nothing. Then it
is **made**, which no match sees the middle of. What comes is first given to the matcher, and its texts are kept.
If that fails, the change is as if it had not been. Then comes one assignment, `decided`: whatever fails after it,
the change is as if it had been made. What goes is taken from the matcher last.

A large change is made in portions, and others match between any two of them. What is coming is **hidden** from
them, though the matcher may find it already; then, from one assignment on, what is going is hidden instead. For
half a million subscriptions that is some thousand portions, none of which a match has to wait for longer than
about a millisecond. Those who ask for ids, and what is known of them, wait for the end of the change.

Failing, at any step, for want of memory or by an interrupt, leaves parts that contradict each other. They are
**settled** by telling from them what holds and building that anew: the matcher by its `rescue`, the rest here.
That is linear in all that the engine holds, but it changes nothing that it reads. So if settling fails too it can
be tried again, as often as it takes; until it succeeds nobody is given an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from harken.intake import Admission
from harken.matching.contract import Incoming, Learning, Matcher, Slots, is_gradual
from harken.matching.events.batch import EventBatch
from harken.matching.identities import Exchange, Identities
from harken.model.subscriptions import Validity
from harken.portions import ALONE, BESIDE, Pace, Portions, in_parts
from harken.written import Written

Known = TypeVar("Known")


class Hidden:
    """What nobody is told of, though the matcher may find it: what is coming, or going, while that takes long."""

    __slots__ = ("mask",)

    def __init__(self) -> None:
        self.mask: npt.NDArray[np.bool_] | None = None
        """By slot, or None if all is told. Assigned in one step: a match sees all of a change or nothing."""

    def hide(self, slots: Slots, count: int) -> None:
        """Hide these of so many slots, and no others."""
        mask = None
        if len(slots):
            mask = np.zeros(count, np.bool_)
            mask[slots] = True
        self.mask = mask


class Held(NamedTuple):
    """All that an engine holds. Owners and validity are by slot."""

    matcher: Matcher
    identities: Identities
    owners: dict[int, str]
    validity: dict[int, Validity]
    written: Written | None
    """None if texts are not kept."""
    hidden: Hidden


@dataclass(slots=True)
class Change:
    """One change of what an engine holds."""

    exchange: Exchange
    incoming: Incoming | None = None
    owners: dict[int, str] = field(default_factory=dict)
    validity: dict[int, Validity] = field(default_factory=dict)
    texts: Callable[[], Sequence[object]] | None = None
    """What was written of those that come; None if it is not known."""
    events: EventBatch | None = None
    decided: bool = False

    @classmethod
    def taking_in(cls, admission: Admission, identities: Identities) -> Change:
        """Subscriptions come; those that they replace go."""
        leaving = np.zeros(0, np.int64)
        if admission.replaces:
            known = identities.slots_of(admission.ids)
            leaving = known[known >= 0]
        exchange = identities.exchange(leaving, admission.ids)
        admission.incoming.leaving = len(leaving)
        owners, validity = (
            _by_slot(each, exchange.coming) if each else {} for each in (admission.owners, admission.validity)
        )
        return cls(exchange, admission.incoming, owners, validity, admission.texts)

    @classmethod
    def letting_go(cls, slots: Slots, identities: Identities) -> Change:
        """Subscriptions go."""
        return cls(identities.exchange(slots))

    @classmethod
    def learning(cls, events: EventBatch, identities: Identities) -> Change:
        """The matcher arranges itself for events like these."""
        return cls(identities.exchange(), events=events)

    def portions(self, held: Held, pace: Pace) -> Portions:
        """Change what is held. Between two portions a match finds all as it was, or all as it will be."""
        if self.events is not None:
            yield from _learn(held.matcher, self.events, pace)
            return
        slots = self.exchange.slots + len(self.exchange.ids)
        coming, leaving = self.exchange.coming, self.exchange.leaving
        counts = len(leaving), len(coming), 0 if self.incoming is None else self.incoming.clauses
        is_long = not pace.is_at_once(max(counts))
        if is_long:
            held.hidden.hide(coming, slots)
        yield from self._take_in(held, pace)
        self.decided = True
        yield from held.identities.name_in_portions(self.exchange, pace)
        yield from _update(held.owners, self.owners, pace) if self.owners else ()
        yield from _update(held.validity, self.validity, pace) if self.validity else ()
        if is_long:
            held.hidden.hide(leaving, slots)  # instead of those that come: from now on, all is as it will be
        yield from self._let_go(held, pace)
        yield from held.identities.free_in_portions(self.exchange, pace)
        held.hidden.mask = None
        if is_gradual(held.matcher):
            yield from held.matcher.arrange_in_portions(len(coming), len(leaving), pace)

    def _take_in(self, held: Held, pace: Pace) -> Portions:
        """Give those that come to the matcher, and keep their texts."""
        coming = self.exchange.coming
        if self.incoming is not None and is_gradual(held.matcher):
            yield from held.matcher.add_in_portions(coming, self.incoming, pace)
        elif self.incoming is not None:
            held.matcher.add(coming, self.incoming)
        if self.texts is not None and held.written is not None:
            if not pace.is_at_once(len(coming)):
                yield BESIDE
            texts = self.texts()
            if not pace.is_at_once(len(coming)):
                yield ALONE
            yield from held.written.admit_in_portions(coming, texts, pace)

    def _let_go(self, held: Held, pace: Pace) -> Portions:
        """Take those that go from the matcher, and forget what was known of them."""
        leaving = self.exchange.leaving
        if not len(leaving):
            return
        if is_gradual(held.matcher):
            yield from held.matcher.remove_in_portions(leaving, pace)
        else:
            held.matcher.remove(leaving)
        yield from _forget(held.owners, leaving, pace) if held.owners else ()
        yield from _forget(held.validity, leaving, pace) if held.validity else ()
        if held.written is not None:
            yield from held.written.forget_in_portions(leaving, pace)

    def settled(self, held: Held, create: Callable[[], Matcher]) -> Held:
        """What is to be held after this change has failed at any step: all of it or nothing."""
        identities, owners, validity = held.identities, held.owners, held.validity
        if self.decided:
            identities = identities.after(self.exchange)
            owners, validity = self._after(owners, self.owners), self._after(validity, self.validity)
        matcher = create()
        matcher.rescue(held.matcher, identities.slots())
        written = None if held.written is None else held.written.only(identities.slots())
        return Held(matcher, identities, owners, validity, written, Hidden())

    def _after(self, known: dict[int, Known], coming: dict[int, Known]) -> dict[int, Known]:
        leaving = set(self.exchange.leaving.tolist())
        return {slot: each for slot, each in known.items() if slot not in leaving} | coming


def _learn(matcher: Matcher, events: EventBatch, pace: Pace) -> Portions:
    if is_gradual(matcher):
        yield from matcher.learn_in_portions(events, pace)
    elif isinstance(matcher, Learning):
        matcher.learn(events)


def _update(known: dict[int, Known], coming: Mapping[int, Known], pace: Pace) -> Portions:
    items = iter(coming.items())
    return in_parts(len(coming), pace, lambda part: known.update(islice(items, part.stop - part.start)))


def _forget(known: dict[int, Known], leaving: Slots, pace: Pace) -> Portions:
    def forget(part: slice) -> None:
        for slot in leaving[part].tolist():
            known.pop(slot, None)

    return in_parts(len(leaving), pace, forget)


def _by_slot(by_place: dict[int, Known], slots: Slots) -> dict[int, Known]:
    return {int(slots[place]): each for place, each in by_place.items()}
