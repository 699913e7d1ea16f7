"""Taking subscriptions in: from rows or tables of any accepted form to what a matcher can add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from harken.compiler import Reject, Texts, compile_texts, read_expression
from harken.errors import DuplicateSubscriptionError, ExpressionError, HarkenError, SubscriptionError
from harken.matching.contract import Incoming
from harken.matching.identity import Identities
from harken.model.expressions import Expression, check_schema
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.model.subscriptions import ALWAYS, Subscription, SubscriptionId, Validity
from harken.normal.compiled import conform, is_compiled
from harken.normal.decompiled import expressions_of
from harken.normal.validation import compiled_faults

SubscriptionSource: TypeAlias = (
    pa.Table
    | pa.RecordBatch
    | Iterable[Subscription | Mapping[str, object] | tuple[SubscriptionId, str | Expression]]
)

COLUMNS = ("id", "expression", "owner", "valid_from", "valid_until")


@dataclass(slots=True)
class Admission:
    """Subscriptions that may be added, columnwise, and the rows that may not."""

    ids: list[SubscriptionId]
    owners: Sequence[str | None]
    validity: Sequence[Validity]
    incoming: Incoming
    rejects: list[Reject]


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
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table) and is_compiled(source):
        return _admit_compiled(conform(source), registered, schema, limits, replace)
    texts = _texts_of_table(source) if isinstance(source, pa.Table) else _texts_of_rows(source)
    compilation = compile_texts(texts, schema=schema, limits=limits, progress=progress)
    ids = compilation.table.column("id").to_pylist()
    kept, clashes = _without_clashes(ids, registered, replace)
    rows = compilation.rows
    rejects = compilation.rejects + [Reject(int(rows[at]), ids[at], error) for at, error in clashes]
    taken = rows[kept].tolist()
    table = compilation.table if len(kept) == len(ids) else compilation.table.take(pa.array(kept, pa.int64()))
    incoming = Incoming(partial(_parsed, texts, taken, limits), lambda: table)
    return Admission(
        [ids[at] for at in kept],
        [None] * len(taken) if texts.owners is None else [texts.owners[row] for row in taken],
        [texts.validity(row) for row in taken],
        incoming,
        sorted(rejects, key=lambda reject: reject.row),
    )


def _parsed(texts: Texts, rows: list[int], limits: Limits) -> list[Expression]:
    return [read_expression(texts.expressions[row], None, limits) for row in rows]


def _without_clashes(
    ids: list[SubscriptionId], registered: Identities, replace: bool
) -> tuple[list[int], list[tuple[int, HarkenError]]]:
    """Which rows may keep their id; with `replace`, of several rows with one id the last."""
    clashes: list[tuple[int, HarkenError]] = []
    kept: dict[SubscriptionId, int] = {}
    for at, id in enumerate(ids):
        try:
            registered.check_like_others(id)
            if not replace and (id in kept or id in registered):
                raise DuplicateSubscriptionError(id)
        except SubscriptionError as error:
            clashes.append((at, error))
        else:
            kept[id] = at
    return sorted(kept.values()), clashes


def _admit_compiled(
    table: pa.Table, registered: Identities, schema: Schema | None, limits: Limits, replace: bool
) -> Admission:
    ids = table.column("id").to_pylist()
    faults = compiled_faults(table, limits)
    rejects = [Reject(row, ids[row], error) for row, error in faults.items()]
    sound = [row for row in range(len(ids)) if row not in faults]
    kept, clashes = _without_clashes([ids[row] for row in sound], registered, replace)
    rejects += [Reject(sound[at], ids[sound[at]], error) for at, error in clashes]
    kept = [sound[at] for at in kept]
    if schema is not None:
        kept = _fitting(table, kept, schema, rejects)
    taken = table if len(kept) == len(ids) else table.take(pa.array(kept, pa.int64()))
    bounds = zip(taken.column("valid_from").to_pylist(), taken.column("valid_until").to_pylist(), strict=True)
    return Admission(
        [ids[at] for at in kept],
        taken.column("owner").to_pylist(),
        [ALWAYS if start is None and end is None else Validity(start, end) for start, end in bounds],
        Incoming(partial(expressions_of, taken), lambda: taken),
        sorted(rejects, key=lambda reject: reject.row),
    )


def _fitting(table: pa.Table, rows: list[int], schema: Schema, rejects: list[Reject]) -> list[int]:
    """The rows whose predicates fit the schema; the others join the rejects."""
    fitting = []
    for row, expression in zip(rows, expressions_of(table.take(pa.array(rows, pa.int64()))), strict=True):
        try:
            check_schema(expression, schema)
        except ExpressionError as error:
            rejects.append(Reject(row, table.column("id")[row].as_py(), error))
        else:
            fitting.append(row)
    return fitting


def _texts_of_table(table: pa.Table) -> Texts:
    missing = [name for name in ("id", "expression") if name not in table.column_names]
    if missing:
        raise SubscriptionError(
            f"a table of subscriptions needs the columns id and expression, found {table.column_names}"
        )
    columns = {name: table.column(name).to_pylist() for name in COLUMNS if name in table.column_names}
    return Texts(
        columns["id"],
        columns["expression"],
        columns.get("owner"),
        columns.get("valid_from"),
        columns.get("valid_until"),
    )


def _texts_of_rows(rows: Iterable[object]) -> Texts:
    if isinstance(rows, str | bytes | Mapping):
        raise SubscriptionError(f"expected rows of subscriptions, found a {type(rows).__name__}")
    fields = [_fields(row) for row in rows]
    ids, expressions, owners, starts, ends = zip(*fields, strict=True) if fields else ((), (), (), (), ())
    return Texts(
        ids,
        expressions,
        owners if any(owner is not None for owner in owners) else None,
        starts if any(start is not None for start in starts) else None,
        ends if any(end is not None for end in ends) else None,
    )


def _fields(row: object) -> tuple[object, object, str | None, datetime | None, datetime | None]:
    match row:
        case Subscription(id=id, expression=expression, owner=owner, validity=validity):
            return id, expression, owner, validity.valid_from, validity.valid_until
        case Mapping():
            unknown = set(row) - set(COLUMNS)
            if unknown:
                raise SubscriptionError(f"a subscription has no field {sorted(map(str, unknown))[0]!r}")
            return tuple(row.get(name) for name in COLUMNS)  # type: ignore[return-value]
        case (id, expression):
            return id, expression, None, None, None
    raise SubscriptionError(f"a subscription is a mapping, a pair or a Subscription, found {row!r}")
