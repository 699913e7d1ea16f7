"""Taking subscriptions in: from rows or tables of any accepted form to what a matcher can add."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.compiler import Reading, Reject, Texts, compile_texts, read_expression, read_texts
from harken.errors import DuplicateSubscriptionError, ExpressionError, HarkenError, SubscriptionError, closest
from harken.matching.contract import Incoming
from harken.matching.events.tables import ArrowArray, ArrowStream, MixedTable, frame_of
from harken.matching.identities import Identities, Ids, type_of
from harken.model.expressions import Expression, check_schema
from harken.model.foreign import shown
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.model.subscriptions import Subscription, SubscriptionId, Validity, checked_id, checked_owner
from harken.normal.compiled import CompiledBuilder, conform, is_compiled
from harken.normal.decompiled import expressions_of
from harken.normal.form import normalise
from harken.normal.validation import compiled_faults

SubscriptionSource: TypeAlias = (
    pa.Table
    | pa.RecordBatch
    | ArrowStream
    | ArrowArray
    | Iterable[Subscription | Mapping[str, object] | tuple[SubscriptionId, str | Expression]]
)

Rows: TypeAlias = npt.NDArray[np.int64]

FEW = 128
"""Up to so many rows are taken in sooner without a table."""

COLUMNS = ("id", "expression", "owner", "valid_from", "valid_until")
_KNOWN, _NEEDED = frozenset(COLUMNS), frozenset(("id", "expression"))


@dataclass(slots=True)
class Admission:
    """Subscriptions that may be added, columnwise, and the rows that may not.

    The ids are distinct. Owners and bounds are by place among them, where there are any.
    """

    ids: Ids
    owners: dict[int, str]
    validity: dict[int, Validity]
    incoming: Incoming
    rejects: list[Reject]
    texts: Callable[[], Sequence[object]] | None
    """What was written, text or tree; None if only the compiled form came."""
    replaces: bool
    """Whether some of the ids may be registered, and what is registered under them gives way."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Subscriptions checked and compiled, each for itself: what an engine holds has not been looked at yet."""

    table: pa.Table
    rows: Rows
    """Which row of what was handed in each row of the table was."""
    rejects: list[Reject]
    expressions: Callable[[pa.Table, Rows], Sequence[Expression]]
    """The expressions of some of the rows, as a table and by number."""
    texts: Callable[[Rows], Sequence[object]] | None = None
    """What was written, text or tree, of some of the rows; None if only the compiled form came."""

    def admitted(self, registered: Identities, *, replace: bool) -> Admission:
        """Those that may join the ids that are registered. Nothing is changed yet."""
        ids = _joined(self.table.column("id"))
        kept, clashes = _without_clashes(ids, registered, replace)
        rejects = self.rejects + [Reject(int(self.rows[at]), ids[at].as_py(), error) for at, error in clashes]
        table, rows = _taken(self.table, kept), self.rows[kept]
        incoming = Incoming(partial(self.expressions, table, rows), lambda: table)
        rejects.sort(key=lambda reject: reject.row)
        texts = None if self.texts is None else partial(self.texts, rows)
        ids = _joined(table.column("id"))
        return Admission(ids, _owners(table), _validity(table), incoming, rejects, texts, replace)


class Checked(NamedTuple):
    """A subscription of a few, checked for itself."""

    id: SubscriptionId
    owner: str | None
    validity: Validity
    reading: Reading
    written: object


@dataclass(frozen=True, slots=True)
class Few:
    """A few subscriptions, each checked for itself, without a table: to make one would take longer than the rest.

    And each step with Arrow gives the interpreter away, for which a change has to wait beside threads that match.
    """

    rows: list[Checked]
    rejects: list[Reject]

    @classmethod
    def one(
        cls,
        id: object,
        written: object,
        owner: object,
        validity: Callable[[], Validity],
        schema: Schema | None,
        limits: Limits,
    ) -> Few:
        """What a user hands in, checked in the order in which rows of a table are."""
        checked, bounds, owned = checked_id(id), validity(), checked_owner(owner)
        expression = read_expression(written, schema, limits)
        reading = Reading(0, expression, normalise(expression, limits))
        return cls([Checked(checked, owned, bounds, reading, written)], [])

    @classmethod
    def of(cls, texts: Texts, schema: Schema | None, limits: Limits) -> Few:
        """Those of some texts that can be taken."""
        readings, rejects = read_texts(texts, schema, limits)
        owners = texts.owners or [None] * len(texts)
        rows = [
            Checked(
                checked_id(texts.ids[reading.row]),
                checked_owner(owners[reading.row]),
                texts.validity(reading.row),
                reading,
                texts.expressions[reading.row],
            )
            for reading in readings
        ]
        return cls(rows, rejects)

    def admitted(self, registered: Identities, *, replace: bool) -> Admission:
        """As `Compiled.admitted`."""
        kept, clashes = self._kept(registered, replace)
        rejects = self.rejects
        if clashes:
            rejects = sorted(rejects + clashes, key=lambda reject: reject.row)
        owners, validity = dict[int, str](), dict[int, Validity]()
        for at, row in enumerate(kept):
            if row.owner is not None:
                owners[at] = row.owner
            if not row.validity.is_always:
                validity[at] = row.validity
        forms = [row.reading.form for row in kept]
        incoming = Incoming(lambda: [row.reading.expression for row in kept], partial(_table_of, kept), forms)
        ids, written = [row.id for row in kept], [row.written for row in kept]
        return Admission(ids, owners, validity, incoming, rejects, lambda: written, replace)

    def _kept(self, registered: Identities, replace: bool) -> tuple[list[Checked], list[Reject]]:
        """Those that may keep their id, and of those that may not, why; as `_without_clashes`."""
        rows = self.rows
        if rows and not registered.accepts(type_of([rows[0].id])):
            return [], [Reject(row.reading.row, row.id, registered.unlike(row.id)) for row in rows]
        if replace:
            last = {row.id: row for row in rows}
            return [row for row in rows if last[row.id] is row], []
        if len(rows) == 1 and rows[0].id not in registered:  # as mostly
            return rows, []
        taken, kept, clashes = set[SubscriptionId](), list[Checked](), list[Reject]()
        for row in rows:
            if row.id in taken or row.id in registered:
                clashes.append(Reject(row.reading.row, row.id, _clash(row.id, registered)))
            else:
                kept.append(row)
                taken.add(row.id)
        return kept, clashes


def _table_of(rows: Iterable[Checked]) -> pa.Table:
    builder = CompiledBuilder()
    for row in rows:
        builder.add(row.id, row.reading.form, row.owner, row.validity)
    return builder.finish()


def admit(
    source: SubscriptionSource,
    registered: Identities,
    schema: Schema | None,
    limits: Limits,
    *,
    replace: bool,
    progress: Callable[[int], None] | None = None,
) -> Admission:
    """Check and compile what a user hands in. Nothing is changed yet."""
    return compiled(source, schema, limits, progress).admitted(registered, replace=replace)


def compiled(
    source: SubscriptionSource | MixedTable,
    schema: Schema | None,
    limits: Limits,
    progress: Callable[[int], None] | None = None,
) -> Compiled:
    """What a user hands in, compiled. Whatever of the user's is called is called in here."""
    given = frame_of(source, SubscriptionError)
    if isinstance(given, pa.Table) and is_compiled(given):
        return _checked(conform(given), schema, limits)
    texts = texts_of(source if given is None else given)
    return _compiled(texts, schema, limits, progress)


def checked(
    source: SubscriptionSource,
    schema: Schema | None,
    limits: Limits,
    progress: Callable[[int], None] | None = None,
) -> Compiled | Few:
    """As `compiled`, a few rows without a table."""
    given = frame_of(source, SubscriptionError)
    if given is not None:
        return compiled(given, schema, limits, progress)
    texts = _texts_of_rows(source)  # type: ignore[arg-type]  # then rows
    if len(texts) > FEW:
        return _compiled(texts, schema, limits, progress)
    few = Few.of(texts, schema, limits)
    if progress is not None and len(texts):
        progress(len(texts))
    return few


def _compiled(
    texts: Texts, schema: Schema | None, limits: Limits, progress: Callable[[int], None] | None
) -> Compiled:
    compilation = compile_texts(texts, schema=schema, limits=limits, progress=progress)

    def parsed(_: pa.Table, rows: Rows) -> Sequence[Expression]:
        return [read_expression(texts.expressions[row], None, limits) for row in rows.tolist()]

    return Compiled(compilation.table, compilation.rows, compilation.rejects, parsed, partial(_written, texts))


def _checked(table: pa.Table, schema: Schema | None, limits: Limits) -> Compiled:
    """The sound rows of a table that came compiled."""
    faults = compiled_faults(table, limits)
    rejects = [Reject(row, table.column("id")[row].as_py(), error) for row, error in faults.items()]
    rows = np.delete(np.arange(table.num_rows), list(faults))
    if schema is not None:
        rows = fitting(table, rows, schema, rejects)
    return Compiled(_taken(table, rows), rows, rejects, lambda taken, _: expressions_of(taken))


def _owners(table: pa.Table) -> dict[int, str]:
    owners = table.column("owner")
    if owners.null_count == len(owners):
        return {}
    return dict(zip(np.flatnonzero(_known(owners)).tolist(), owners.drop_null().to_pylist(), strict=True))


def _validity(table: pa.Table) -> dict[int, Validity]:
    starts, ends = table.column("valid_from"), table.column("valid_until")
    if starts.null_count == ends.null_count == table.num_rows:
        return {}
    bounded = _known(starts) | _known(ends)
    bounds = (column.filter(pa.array(bounded)).to_pylist() for column in (starts, ends))
    rows = np.flatnonzero(bounded).tolist()
    return {row: Validity(start, end) for row, start, end in zip(rows, *bounds, strict=True)}


def _known(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(), np.bool_)


def _written(texts: Texts, rows: Rows) -> Sequence[object]:
    """The texts or trees of these rows, ascending."""
    if len(rows) == len(texts):
        return texts.expressions
    return [texts.expressions[row] for row in rows.tolist()]


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _taken(table: pa.Table, rows: Rows) -> pa.Table:
    """These rows, ascending, of a table: often it is all of them."""
    return table if len(rows) == table.num_rows else table.take(pa.array(rows))


def _without_clashes(
    ids: pa.Array, registered: Identities, replace: bool
) -> tuple[Rows, list[tuple[int, HarkenError]]]:
    """Which rows may keep their id; with `replace`, of several rows with one id the last."""
    if not registered.accepts(ids.type):
        return np.zeros(0, np.int64), [(at, registered.unlike(id)) for at, id in enumerate(ids.to_pylist())]
    kept = _one_of_each(ids, last=replace)
    if not replace and len(registered):
        kept = kept[registered.slots_of(ids)[kept] < 0]
    if replace or len(kept) == len(ids):
        return kept, []
    refused = np.delete(np.arange(len(ids)), kept).tolist()
    return kept, [(at, _clash(ids[at].as_py(), registered)) for at in refused]


def _clash(id: SubscriptionId, registered: Identities) -> DuplicateSubscriptionError:
    """That another one has an id, and which one."""
    if id in registered:
        return DuplicateSubscriptionError(id)
    return DuplicateSubscriptionError(id, "comes twice", "pass replace=True to keep the last of those with one id")


def _one_of_each(ids: pa.Array, *, last: bool) -> Rows:
    """The first or the last row of each id, ascending."""
    rows = np.arange(len(ids))
    if not _repeat(ids):
        return rows
    codes = ids.dictionary_encode().indices.to_numpy()
    chosen = np.zeros(codes.max() + 1, np.int64)
    # Where a code comes several times, the row that is written last stays.
    if last:
        chosen[codes] = rows
    else:
        chosen[codes[::-1]] = rows[::-1]
    return np.sort(chosen)


def _repeat(ids: pa.Array) -> bool:
    """Whether an id comes twice."""
    if len(ids) < 2:
        return False
    if not pa.types.is_integer(ids.type):
        return len(ids.unique()) < len(ids)
    ascending = np.sort(ids.to_numpy())  # takes a tenth of what hashing does
    return bool((ascending[1:] == ascending[:-1]).any())


def fitting(table: pa.Table, rows: Rows, schema: Schema, rejects: list[Reject]) -> Rows:
    """The rows whose predicates fit the schema; the others join the rejects."""
    fitting = []
    for row, expression in zip(rows.tolist(), expressions_of(_taken(table, rows)), strict=True):
        try:
            check_schema(expression, schema)
        except ExpressionError as error:
            rejects.append(Reject(row, table.column("id")[row].as_py(), error))
        else:
            fitting.append(row)
    return np.array(fitting, np.int64)


def texts_of(source: SubscriptionSource | MixedTable) -> Texts:
    """Subscriptions in columns, from a table of texts or from rows; SubscriptionError if they are neither."""
    table = frame_of(source, SubscriptionError)
    if isinstance(table, pa.Table):
        table = MixedTable(table, {})
    return _texts_of_rows(source) if table is None else _texts_of_table(table)  # type: ignore[arg-type]  # then rows


def _texts_of_table(mixed: MixedTable) -> Texts:
    names = mixed.table.column_names
    if not _NEEDED.issubset(names):
        raise SubscriptionError(f"a table of subscriptions needs the columns id and expression, found {names}")
    _check_names("column", names)
    columns = {name: mixed.column(name) for name in COLUMNS if name in names}
    return Texts(
        _plain(columns["id"]),
        columns["expression"],
        columns.get("owner"),
        columns.get("valid_from"),
        columns.get("valid_until"),
    )


def _texts_of_rows(rows: Iterable[object]) -> Texts:
    """Rows as columns. Not by `zip(*rows)`: it makes an iterator of every row, and all other threads wait."""
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise SubscriptionError(
            f"expected rows of subscriptions, found a {type(rows).__name__}",
            suggestion='write a list of pairs, like [("alice", "price < 300")]',
        )
    rows = rows.copy() if isinstance(rows, list) else rows  # which another thread may change meanwhile
    if isinstance(rows, list) and all(type(row) is tuple and len(row) == 2 for row in rows):
        return Texts(_plain([row[0] for row in rows]), [row[1] for row in rows])  # as they come by the million
    fields: list[_Fields] = []
    faults: dict[int, SubscriptionError] = {}
    for number, row in enumerate(rows):
        try:
            fields.append(_fields(row))
        except SubscriptionError as error:
            faults[number] = error
            fields.append((_id_of(row), None, None, None, None))
    owners, starts, ends = ([row[2] for row in fields], [row[3] for row in fields], [row[4] for row in fields])
    return Texts(
        _plain([row[0] for row in fields]),
        [row[1] for row in fields],
        owners if any(owner is not None for owner in owners) else None,
        starts if any(start is not None for start in starts) else None,
        ends if any(end is not None for end in ends) else None,
        faults,
    )


def _plain(ids: Sequence[object]) -> Sequence[object]:
    """Ids without numpy's integers."""
    odd = {type(id) for id in ids} - {int, str}
    if not any(issubclass(each, np.integer) for each in odd):
        return ids
    return [int(id) if isinstance(id, np.integer) else id for id in ids]


_Fields: TypeAlias = tuple[object, object, str | None, datetime | None, datetime | None]


def _fields(row: object) -> _Fields:
    match row:
        case Subscription(id=id, expression=expression, owner=owner, validity=validity):
            return id, expression, owner, validity.valid_from, validity.valid_until
        case Mapping():
            if not _KNOWN >= row.keys() >= _NEEDED:
                _check_names("field", row)
            return tuple(row.get(name) for name in COLUMNS)  # type: ignore[return-value]
        case (id, expression):
            return id, expression, None, None, None
    raise SubscriptionError(
        f"a subscription is a mapping, a pair or a Subscription, found {shown(row)}",
        suggestion='write ("alice", "price < 300"), or a mapping with more fields: ' + ", ".join(COLUMNS),
    )


def _id_of(row: object) -> object:
    """What may be the id of a row that is no subscription."""
    return row.get("id") if isinstance(row, Mapping) else None


def _check_names(what: str, names: Collection[object]) -> None:
    """Names of fields or columns: those that are needed, and none that is like one that is missing.

    Others are passed over. But a misspelt one may matter.
    """
    missing = [name for name in COLUMNS if name not in names]
    for name in names:
        near = closest(str(name), missing) if name not in _KNOWN else None
        if near is not None:
            raise SubscriptionError(f"a subscription has no {what} {name!r}", suggestion=f"did you mean {near!r}?")
    if not _NEEDED.isdisjoint(missing):
        found = ", ".join(map(repr, names)) or "none"
        raise SubscriptionError(
            f"a subscription needs the {what}s id and expression, found {found}",
            suggestion=f"the {what}s are {', '.join(COLUMNS)}",
        )
