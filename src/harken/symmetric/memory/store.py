"""The store in memory: both sides in flat arrays, changed at any time, matched by kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from datetime import datetime
from itertools import count

import pyarrow as pa

from harken.errors import ClosedError
from harken.model.schema import Schema
from harken.model.subscriptions import SubscriptionId, moment_of
from harken.normal.compiled import conform
from harken.symmetric.arguments import natural
from harken.symmetric.contract import OTHER, Held, Notice, Outlet, Pair, Side, arriving, judged, named
from harken.symmetric.guarding import Guard, Journal, Result
from harken.symmetric.memory.holdings import Holdings
from harken.symmetric.outbox import Keeping, Outbox
from harken.symmetric.semantics import Boxes, Covers


class MemoryStore(Keeping[Notice]):
    """Holds constraints in memory, each side indexed.

    A match costs a few microseconds, and more only for what comes near; a change costs some ten microseconds on
    average, though one in many takes longer, because segments are joined. Calls come from any thread: those that
    look run at the same time, and one that changes something waits for them and keeps others waiting. A call that
    fails or is interrupted has changed nothing. In the middle of a call the same thread cannot change anything, as
    a signal handler might try to, but is told so by EngineBusyError.

    `waiting` is how many constraints are compared one by one before they are indexed; `growth` how many times as
    large as what is new a segment may be to be joined with it; `smallest_tree` how many clauses have to have the
    same attributes to be indexed by all of them at once.
    """

    def __init__(self, *, waiting: int = 32, growth: int = 4, smallest_tree: int = 64) -> None:
        self.journal = Journal()
        sizes = {"waiting": waiting, "growth": growth, "smallest_tree": smallest_tree}
        checked = {name: natural(name, size) for name, size in sizes.items()}
        self._sides: dict[Side, Holdings] = {side: Holdings(side, self.journal, **checked) for side in OTHER}
        self._guard = Guard(self.journal)
        self._notices = Outbox[Notice](self.journal)
        self._numbers = count(1)
        self._is_joined = False

    def together(self, work: Callable[[MemoryStore], Result]) -> Result:
        """Do several calls, and other work that notes in the journal, as one change.

        The work is given a store whose calls are part of it.
        """
        return self._change(lambda: work(self.joined()))

    def joined(self) -> MemoryStore:
        """The store as it is seen by those who are in the middle of `together` or `look`."""
        joined = copy(self)
        joined._is_joined = True
        return joined

    def look(self, work: Callable[[], Result]) -> Result:
        """Do some work while nothing changes. What it asks of the store, it asks of the `joined` one."""
        return work() if self._is_joined else self._guard.look(work)

    # ---------------------------------------------------------------- changing

    def put(
        self,
        side: Side,
        several: Sequence[Held],
        covers: Covers,
        *,
        replace: bool = False,
        notify: bool = False,
        at: datetime | None = None,
    ) -> list[Pair]:
        """Keep constraints, and say what each matches on the other side; with `notify`, note it too."""
        moment = moment_of(at)
        ids = [each.id for each in several]

        def work() -> list[Pair]:
            own = self._side(side)
            own.records.check_coming(ids, replace=replace)
            pairs = self._match(OTHER[side], arriving(several, moment), covers, moment)
            own.put({each.id: each for each in several}.values())
            if notify:
                self._notify(side, several, pairs, moment)
            return pairs

        return self._change(work)

    def load(self, side: Side, table: pa.Table, schema: Schema | None) -> None:
        """Keep many constraints, given in the compiled form, without matching. A million takes a few seconds.

        The table is kept too, as what `get` reads from: its memory is shared, not copied.
        """
        table = conform(table)
        ids = table.column("id").to_pylist()

        def work() -> None:
            own = self._side(side)
            own.records.check_coming(ids, are_alike=True)  # as a column is
            own.load(ids, table, schema)

        self._change(work)

    def remove(self, side: Side, ids: Iterable[SubscriptionId]) -> None:
        """Forget constraints."""
        going = list(ids)
        self._change(lambda: self._side(side).remove(going))

    # ---------------------------------------------------------------- looking

    def match(
        self, side: Side, asked: Sequence[Boxes], covers: Covers, *, at: datetime | None = None
    ) -> list[Pair]:
        """What is held on this side and matches constraints of the other side, which are not kept."""
        moment = None if at is None else moment_of(at)
        return self.look(lambda: self._match(side, asked, covers, moment))

    def matched(
        self, side: Side, asked: Boxes, covers: Covers, *, at: datetime | None = None
    ) -> dict[SubscriptionId, Boxes]:
        """What matches one constraint, with its boxes."""
        moment = None if at is None else moment_of(at)

        def work() -> dict[SubscriptionId, Boxes]:
            records = self._side(side).records
            found = self._match(side, [asked], covers, moment)
            return {id: records.held_at(records.slot_of[id]).boxes for _, id in found}

        return self.look(work)

    def attributes(self, side: Side) -> set[str]:
        """The attributes that constraints are about, or were not long ago."""
        return self.look(lambda: self._side(side).attributes())

    def get(self, side: Side, id: SubscriptionId) -> Held | None:
        """What is kept under an id. What came in a table is put together anew, which takes a moment."""

        def work() -> Held | None:
            records = self._side(side).records
            slot = records.slot_of.get(id)
            return None if slot is None else records.held_at(slot)

        return self.look(work)

    def contents(self, side: Side) -> tuple[list[Held], list[pa.Table]]:
        """All that is kept: what came singly, and what came in tables, in the compiled form."""

        def work() -> tuple[list[Held], list[pa.Table]]:
            records = self._side(side).records
            return records.singly(), list(records.tables())

        return self.look(work)

    def ids(self, side: Side) -> list[SubscriptionId]:
        """All ids of one side."""
        return self.look(lambda: list(self._side(side).records.slot_of))

    def count(self, side: Side) -> int:
        """How many constraints one side has."""
        return self.look(lambda: len(self._side(side).records))

    # ---------------------------------------------------------------- notices

    def notices(self, limit: int) -> list[Notice]:
        """The oldest notices that nobody has settled, by number."""
        return self.look(lambda: self._outbox().waiting(limit))

    def close(self) -> None:
        """Let everything go. All other calls afterwards raise ClosedError."""
        self._guard.alone(self._sides.clear)

    # ---------------------------------------------------------------- inside

    def _change(self, work: Callable[[], Result]) -> Result:
        if self._is_joined:
            return work()
        return self._guard.alone(lambda: self.journal.run(work))

    def _side(self, side: Side) -> Holdings:
        self.check_open()
        return self._sides[side]

    def _with_outbox(self, attempted: str, work: Callable[[Outlet[Notice]], Result]) -> Result:
        return self._change(lambda: work(self._outbox()))

    def _outbox(self) -> Outbox[Notice]:
        self.check_open()
        return self._notices

    def check_open(self) -> None:
        """ClosedError if it was closed."""
        if not self._sides:
            raise ClosedError("use the store in memory")

    def _match(self, side: Side, asked: Sequence[Boxes], covers: Covers, moment: datetime | None) -> list[Pair]:
        # What is asked of subscriptions are publications, and the other way round.
        decides = OTHER[side] == f"{covers}s"
        return self._side(side).match(asked, decides, lambda ask, held: judged(side, ask, held, covers), moment)

    def _notify(self, side: Side, several: Sequence[Held], pairs: list[Pair], moment: datetime) -> None:
        self._notices.add(Notice(next(self._numbers), *match, moment) for match in named(side, several, pairs))
