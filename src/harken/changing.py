"""Changes of an engine, each of which is made as a whole or not at all, whatever fails on the way.

A change has two phases. It is **prepared**: parsed, compiled, checked, given slots; that changes nothing. Then it
is **made**, which no match sees the middle of. What comes is first given to the matcher, and its texts are kept.
If that fails, the change is as if it had not been. Then comes one assignment, `decided`: whatever fails after it,
the change is as if it had been made.

Failing, at any step, for want of memory or by an interrupt, leaves parts that contradict each other. They are
**settled** by telling from them what holds and building that anew: the matcher by its `rescue`, the rest here.
That is linear in all that the engine holds, but it changes nothing that it reads. So if settling fails too it can
be tried again, as often as it takes; until it succeeds nobody is given an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from harken.intake import Admission
from harken.matching.contract import Incoming, Learning, Matcher, Slots
from harken.matching.events.batch import EventBatch
from harken.matching.identities import Exchange, Identities
from harken.model.subscriptions import Validity
from harken.written import Written

Known = TypeVar("Known")


class Held(NamedTuple):
    """All that an engine holds. Owners and validity are by slot."""

    matcher: Matcher
    identities: Identities
    owners: dict[int, str]
    validity: dict[int, Validity]
    written: Written | None
    """None if texts are not kept."""


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
        owners, validity = (_by_slot(each, exchange.coming) for each in (admission.owners, admission.validity))
        return cls(exchange, admission.incoming, owners, validity, admission.texts)

    @classmethod
    def letting_go(cls, slots: Slots, identities: Identities) -> Change:
        """Subscriptions go."""
        return cls(identities.exchange(slots))

    @classmethod
    def learning(cls, events: EventBatch, identities: Identities) -> Change:
        """The matcher arranges itself for events like these."""
        return cls(identities.exchange(), events=events)

    def make(self, held: Held) -> None:
        """Change what is held."""
        if self.events is not None:
            if isinstance(held.matcher, Learning):
                held.matcher.learn(self.events)
            return
        if self.incoming is not None:
            held.matcher.add(self.exchange.coming, self.incoming)
        if self.texts is not None and held.written is not None:
            held.written.admit(self.exchange.coming, self.texts())
        self.decided = True
        held.identities.make(self.exchange)
        for known in (held.owners, held.validity):
            if known:
                for slot in self.exchange.leaving.tolist():
                    known.pop(slot, None)
        held.owners.update(self.owners)
        held.validity.update(self.validity)
        if len(self.exchange.leaving):
            held.matcher.remove(self.exchange.leaving)
            if held.written is not None:
                held.written.forget(self.exchange.leaving)

    def settled(self, held: Held, create: Callable[[], Matcher]) -> Held:
        """What is to be held after this change has failed at any step: all of it or nothing."""
        identities, owners, validity = held.identities, held.owners, held.validity
        if self.decided:
            identities = identities.after(self.exchange)
            owners, validity = self._after(owners, self.owners), self._after(validity, self.validity)
        matcher = create()
        matcher.rescue(held.matcher, identities.slots())
        written = None if held.written is None else held.written.only(identities.slots())
        return Held(matcher, identities, owners, validity, written)

    def _after(self, known: dict[int, Known], coming: dict[int, Known]) -> dict[int, Known]:
        leaving = set(self.exchange.leaving.tolist())
        return {slot: each for slot, each in known.items() if slot not in leaving} | coming


def _by_slot(by_place: dict[int, Known], slots: Slots) -> dict[int, Known]:
    return {int(slots[place]): each for place, each in by_place.items()}
