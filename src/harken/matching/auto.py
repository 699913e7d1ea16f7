"""The default: a few subscriptions are simply evaluated, many are indexed as suits them and the events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from harken.errors import EventError
from harken.locking import Door
from harken.matching.contract import (
    AccessPath,
    Incoming,
    InParallel,
    Learning,
    Matcher,
    Pairs,
    Reading,
    Saveable,
    Slots,
    Stats,
    in_order,
    is_gradual,
)
from harken.matching.events.batch import EventBatch
from harken.matching.events.mentions import Mentions
from harken.matching.events.sample import ENOUGH, MOST, EventSample
from harken.matching.growing import GrowingArray, places_for
from harken.matching.parallel.options import Parallel
from harken.matching.reference import ReferenceMatcher
from harken.matching.saving import State
from harken.model.arguments import checked_count
from harken.model.events import Event, FlatEvent, flatten
from harken.model.expressions import Expression
from harken.portions import ALONE, AT_ONCE, BESIDE, Pace, Portions, done_at_once

if TYPE_CHECKING:
    from harken.matching.choice import Choice
    from harken.matching.encoding.matcher import EncodedMatcher

SMALL = 1_000
"""Up to so many subscriptions, evaluating each is quicker than loading the kernels."""

EVALUATIONS = 1_000_000
"""Unless so many evaluations of a subscription have come together, which take seconds."""

MANY = 20_000
"""From so many subscriptions on, and again whenever they have doubled, families are compared."""

AGAIN = 1_000_000
"""Families are compared again after so many events, then after twice as many, and so on: events may change."""

_FAMILIES = {
    "dynamic": "harken.matching.clusters.dynamic:DynamicMatcher",
    "rapid": "harken.matching.trees.rapid:RapidMatcher",
}
"""What an index can be; the first one is what it is at first."""

FIRST = next(iter(_FAMILIES))


class AutoMatcher:
    """Evaluates each expression while they are few; from then on, clusters dynamically, or as suits them better.

    Few are indexed, too, once often asked for: beside those who match, or at once for a large batch.

    With `many` subscriptions, whenever these have doubled, and after `again` events (then after twice as many,
    and so on), those algorithms are compared that may suit what is asked, on a sample of the subscriptions and of
    the events that came last. Should another one, or the same made anew for such events, be foreseen to be much
    quicker, and be so when it is made, all move there: beside those who match, while changes wait. `stats` shows
    what was compared.

    Any number of threads may match at once while none adds or removes.
    """

    def __init__(self, *, small: int = SMALL, many: int = MANY, again: int = AGAIN) -> None:
        self._small, self._many = checked_count("small", small), checked_count("many", many)
        self._again = max(1, checked_count("again", again))  # to be doubled
        self._few: ReferenceMatcher | None = ReferenceMatcher()
        self._matcher: Matcher = self._few
        self._read: Callable[[Event], Slots | None] | None = None
        """What matches events that have not been checked, if the algorithm in use does."""
        self._in_use = GrowingArray(np.bool_)
        """By slot: whether it is in use."""
        self._count = 0
        self.picked = "reference"
        """The algorithm in use."""
        self.is_due = False
        """Whether it is time for a turn with changes, though nobody changes anything."""
        self._has_asked = False
        """Whether that has been said, and nobody has come yet."""
        self._events = EventSample()
        self._compared = 0
        """How many subscriptions there were when families were compared, or were to be; and events since."""
        self._met = 0
        self._choice: Choice | None = None
        self._changes = 0
        self._next: tuple[int, str, EncodedMatcher] | None = None
        """What is to take the place of the matcher in use, and after how many changes it holds the same."""
        self._needs_clusters = False
        self._evaluations = 0
        """What was evaluated, about: of threads that come at once, one may not be counted."""
        self._has_guessed = True
        """Whether what is in use was arranged before any event was seen, and nothing was tried since."""

    # ---------------------------------------------------------------- changes

    def prepare(self, incoming: Incoming) -> None:
        """As the algorithm does that will be in use."""
        if self._few is not None and self._outgrows(len(incoming), incoming):
            _family(FIRST)().prepare(incoming)
        else:
            self._matcher.prepare(incoming)

    def _outgrows(self, coming: int, incoming: Incoming) -> bool:
        """Whether there will be too many for evaluating each."""
        return self._count + coming - incoming.leaving > self._small

    def foresee(self) -> None:
        """As the algorithm in use does."""
        self._matcher.foresee()

    def arrange(self) -> None:
        """If it is time to compare families, do that, and make what is better: `learn` of no events moves there.

        Likewise if it is time for an index. In turn with changes; others may match.
        """
        self._has_asked = False
        if self._few is not None:
            self._index(self._few)
        elif self._is_time():
            self._compare(self._events)

    def add(self, slots: Slots, incoming: Incoming) -> None:
        """As the algorithm in use does; with too many for evaluating, those there are move into an index."""
        self._changes += 1
        if self._few is not None and self._outgrows(len(slots), incoming):
            self._become(FIRST, self._index_of(self._few))
        self._matcher.add(slots, incoming)
        self._hold(slots)

    def _index_of(self, few: ReferenceMatcher) -> EncodedMatcher:
        index, known = _family(FIRST)(), self._slots()
        if len(known):
            index.add(known, Incoming.of([few.expression(slot) for slot in known.tolist()]))
        return index

    def _index(self, few: ReferenceMatcher) -> EncodedMatcher | None:
        """An index of a few that is to take their place, unless they change. None if it can't be made now."""
        made = self._next
        if made is None or made[0] != self._changes:
            try:
                made = self._next = self._changes, FIRST, self._index_of(few)
            except Exception as error:
                self._evaluations = 0
                logging.getLogger("harken").warning(
                    "a few subscriptions could not be indexed: %s: %s", type(error).__name__, error
                )
                return None
        return made[2]

    def rehearse(self) -> None:
        """As the algorithm in use does."""
        if is_gradual(self._matcher):
            self._matcher.rehearse()

    def add_in_portions(self, slots: Slots, incoming: Incoming, pace: Pace) -> Portions:
        """As `add`; by an algorithm that cannot, in one portion."""
        self._changes += 1
        if self._few is not None and self._outgrows(len(slots), incoming):
            yield BESIDE
            index = self._index_of(self._few)
            if pace.seconds is not None and is_gradual(index):  # others match meanwhile
                index.rehearse()
            yield ALONE
            self._become(FIRST, index)
        if is_gradual(self._matcher):
            yield from self._matcher.add_in_portions(slots, incoming, pace)
        else:
            self._matcher.add(slots, incoming)
        self._hold(slots)

    def remove(self, slots: Slots) -> None:
        """As the algorithm in use does. An index that has become small stays one."""
        self._changes += 1
        self._matcher.remove(slots)
        self._let_go(slots)

    def remove_in_portions(self, slots: Slots, pace: Pace) -> Portions:
        """As `remove`; by an algorithm that cannot, in one portion."""
        self._changes += 1
        if is_gradual(self._matcher):
            yield from self._matcher.remove_in_portions(slots, pace)
        else:
            self._matcher.remove(slots)
        self._let_go(slots)

    def arrange_in_portions(self, coming: int, leaving: int, pace: Pace) -> Portions:
        """As the algorithm in use does, unless it has done that already."""
        if is_gradual(self._matcher):
            yield from self._matcher.arrange_in_portions(coming, leaving, pace)

    def learn(self, events: EventBatch) -> None:
        """As the algorithm in use does, and with enough of both compare families for such events.

        Evaluating each expression, there is nothing to learn. Of no events, all that happens is what was arranged.
        """
        done_at_once(self.learn_in_portions(events, AT_ONCE))

    def learn_in_portions(self, events: EventBatch, pace: Pace) -> Portions:
        """As `learn`."""
        if self._few is None and len(events):
            sample = EventSample()
            sample.add(events)
            if self._count >= max(self._many, 1) and len(sample) >= ENOUGH:
                yield BESIDE
                self._compare(sample)  # whoever asks for it has a reason
                yield ALONE
            if self._next is None and is_gradual(self._matcher):
                yield from self._matcher.learn_in_portions(events, pace)
            elif self._next is None and isinstance(self._matcher, Learning):
                self._matcher.learn(events)
        self._move()

    def rescue(self, broken: AutoMatcher, slots: Slots) -> None:
        """As the algorithm in use there does."""
        if broken._few is None:
            self._become(broken.picked, _family(broken.picked)())
        self._matcher.rescue(broken._matcher, slots)
        self._hold(slots)
        self._compared, self._choice = broken._compared, broken._choice
        self._again, self._met = broken._again, broken._met
        self._needs_clusters = broken._needs_clusters

    def _become(self, name: str, matcher: EncodedMatcher) -> None:
        matcher.record = getattr(self._matcher, "record", matcher.record)  # of the index that there was, if any
        self._matcher, self._few, self.picked, self._next = matcher, None, name, None
        self._read = matcher.match_unchecked if isinstance(matcher, Reading) else None

    def _let_go(self, slots: Slots) -> None:
        self._in_use.values[slots] = False
        self._count -= len(slots)

    def _hold(self, slots: Slots) -> None:
        self._in_use.grow_to(places_for(slots))
        self._in_use.values[slots] = True
        self._count += len(slots)

    def _slots(self) -> Slots:
        return np.flatnonzero(self._in_use.values)

    # ---------------------------------------------------------------- choosing

    def _has_grown(self) -> bool:
        """Whether so many more subscriptions or events have come that families should be compared."""
        if self._few is not None or self._count < max(self._many, 1):
            return False
        return self._count >= 2 * self._compared or self._met >= self._again

    def _is_time(self) -> bool:
        """Whether there are also events enough."""
        return self._has_grown() and len(self._events) >= ENOUGH

    def _compare(self, sample: EventSample) -> None:
        """Compare the families that may suit, and make the one that is much better, if one is.

        Whatever goes wrong with it, the index in use is as good as it was.
        """
        from harken.matching.choice import compare, made_like, worth_a_trial  # which loads the kernels

        slots, events = self._slots(), sample.batches()
        current: EncodedMatcher = self._matcher  # type: ignore[assignment]  # all families are
        if self._met >= self._again:
            self._again *= 2
        self._compared, self._met, self._events, self._next = len(slots), 0, EventSample(), None
        if self._needs_clusters and self.picked != FIRST:
            return
        try:
            names = [FIRST] if self._needs_clusters else worth_a_trial(current)
            families = {name: _family(name) for name in names}
            choice = compare(families, current, slots, events)
            if choice is not None and not choice.pays and self._has_guessed and self.picked in families:
                choice = replace(choice, picked=self.picked, is_worth_a_look=True)
            if choice is not None and choice.pays:
                made = made_like(families[choice.picked], current, slots, events)
                choice = choice.proven(current, made, events)
                if choice.pays:
                    self._next = self._changes, choice.picked, made
            self._has_guessed = False
            self._choice = choice
        except Exception as error:
            logging.getLogger("harken").warning(
                "algorithms could not be compared, and the one in use stays: %s: %s", type(error).__name__, error
            )

    def _move(self) -> None:
        """Let what was made take the place of the matcher in use, if nothing has changed since."""
        if self._next is not None:
            changes, name, made = self._next
            if changes == self._changes:
                if self._few is None:
                    made.count_on_from(self._matcher)  # type: ignore[arg-type]  # others have matched meanwhile
                self._become(name, made)
            self._next = None

    def _see(self, events: EventBatch) -> None:
        """Take note of events that came, if there is anything to choose; ask once for a turn to do so."""
        if self._count >= self._many:
            self._met += len(events)  # about: of threads that come at once, one may not be counted
        if self._has_grown():
            if len(self._events) < MOST:
                self._events.add(events)
            if len(self._events) >= ENOUGH and not self._has_asked:
                self._has_asked = self.is_due = True

    # ---------------------------------------------------------------- matching

    def match(self, event: FlatEvent) -> Slots:
        """As the algorithm in use does."""
        self._meet(event, is_flat=True)
        return self._matcher.match(event)

    def match_unchecked(self, event: Event) -> Slots | None:
        """As the algorithm in use does, if it does."""
        if self._read is None or (slots := self._read(event)) is None:
            return None
        self._meet(event, is_flat=False)
        return slots

    def flat_until(self, events: list[Event], row: int) -> int:
        """As the algorithm in use sees it, if it does."""
        return row if self._read is None else self._matcher.flat_until(events, row)  # type: ignore[attr-defined]

    def _meet(self, event: Event, *, is_flat: bool) -> None:
        """Take note of one event."""
        if self._few is not None:
            self._evaluate(1)
        elif self._count >= self._many:
            if self._has_grown():
                with suppress(EventError):  # of another thread, which has changed it since it was matched
                    self._see(EventBatch([event if is_flat else flatten(event)[0]], {}, 1))  # type: ignore[list-item]
            else:
                self._met += 1

    def _evaluate(self, events: int) -> bool:
        """Take note of what is to be evaluated; whether an index is worth it by now, for which a turn is asked."""
        self._evaluations += events * self._count
        is_worth_it = self._evaluations >= EVALUATIONS
        if is_worth_it and not self._has_asked:
            self._has_asked = self.is_due = True
        return is_worth_it

    def _for_batch(self, events: EventBatch) -> tuple[str, Matcher]:
        """What matches a batch, and its name: the algorithm in use, or an index that is about to be."""
        self._see(events)
        few = self._few
        if few is not None and self._evaluate(len(events)) and (index := self._index(few)) is not None:
            return FIRST, index
        return self.picked, self._matcher

    def match_batch(self, events: EventBatch) -> Pairs:
        """As the algorithm in use does."""
        return self._for_batch(events)[1].match_batch(events)

    def check_parallel(self, parallel: Parallel) -> None:
        """Threads can match in every way, once there is an index; if together on one event, it has clusters."""
        self._needs_clusters |= parallel.mode != "me-ip"

    def match_batch_in_parallel(self, events: EventBatch, parallel: Parallel, door: Door | None = None) -> Pairs:
        """As the algorithm in use does; a few expressions are evaluated by one thread.

        One without clusters has each thread take events of its own, whatever was asked for.
        """
        name, matcher = self._for_batch(events)
        if not isinstance(matcher, InParallel):
            return in_order(matcher.match_batch(events), parallel)
        if name != FIRST and parallel.mode != "me-ip":
            alone = replace(parallel, mode="me-ip", group=None, target_latency_ms=None)
            return in_order(matcher.match_batch_in_parallel(events, alone, door), parallel)
        return matcher.match_batch_in_parallel(events, parallel, door)

    # ---------------------------------------------------------------- what is known

    @property
    def attributes(self) -> Mentions:
        """The attributes that some subscription mentions."""
        return self._matcher.attributes

    def expression(self, slot: int) -> Expression:
        """As the algorithm in use knows it."""
        return self._matcher.expression(slot)

    def access(self, slot: int) -> Sequence[AccessPath]:
        """As the algorithm in use says."""
        return self._matcher.access(slot)

    def stats(self) -> Stats:
        """Those of the algorithm in use, and what was compared to pick it."""
        compared = {} if self._choice is None else {"compared": self._choice.said()}
        return {**self._matcher.stats(), **compared}

    def state(self) -> State | None:
        """That of the index, under its name; none without one."""
        matcher = self._matcher
        state = matcher.state() if isinstance(matcher, Saveable) else None
        return None if state is None else State.of_parts({self.picked: state})

    def restore(self, state: State, slots: Slots) -> None:
        """Have an index, however few subscriptions there are now, of the family that it was."""
        name = next((each for each in _FAMILIES if state.has_part(each)), FIRST)
        index = _family(name)()
        index.restore(state.part(name), slots)
        self._become(name, index)
        self._has_guessed = False  # and what is mapped from a file, which others may share, stays that for now
        self._hold(slots)


def _family(name: str) -> Callable[[], EncodedMatcher]:
    """What makes an empty matcher of a family. Loads its kernels."""
    module, _, attribute = _FAMILIES[name].partition(":")
    made: Callable[[], EncodedMatcher] = getattr(import_module(module), attribute)
    return made
