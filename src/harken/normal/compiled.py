"""The compiled form: subscriptions as one Arrow table that every engine, database and Spark job can load.

One row per subscription. Its `clauses` are a list of lists of predicates, so Arrow keeps all predicates of a
table in flat columns that kernels read without copying. docs/compiled-form.md describes each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.errors import SubscriptionError
from harken.model import capacity
from harken.model.subscriptions import ALWAYS, SubscriptionId, Validity
from harken.model.values import Type
from harken.normal.form import NormalForm
from harken.normal.operators import OPERATORS, Operand, operand_of, rows_of

TYPES: tuple[str, ...] = tuple(each.value for each in Type)
TYPE_CODE = {name: code for code, name in enumerate(TYPES)}
OPERATOR_CODE = {name: code for code, name in enumerate(OPERATORS)}
NO_TYPE = -1
IN_PARTS = "subscribe in several parts"

_INTEGER_TYPES = [TYPE_CODE[name] for name in ("int", "bool", "date", "timestamp")]

PREDICATE = pa.struct(
    [
        ("attribute", pa.dictionary(pa.int32(), pa.string())),
        ("operator", pa.dictionary(pa.int8(), pa.string())),
        ("type", pa.dictionary(pa.int8(), pa.string())),
        ("integer", pa.int64()),
        ("real", pa.float64()),
        ("text", pa.string()),
        ("shape", pa.list_(pa.float64())),
    ]
)
CLAUSES = pa.list_(pa.list_(PREDICATE))
MOMENT = pa.timestamp("us", tz="UTC")


def compiled_schema(id_type: pa.DataType) -> pa.Schema:
    """The schema of a compiled table whose ids are of this type (int64 or string)."""
    return pa.schema(
        [
            pa.field("id", id_type, nullable=False),
            ("owner", pa.string()),
            ("valid_from", MOMENT),
            ("valid_until", MOMENT),
            pa.field("clauses", CLAUSES, nullable=False),
        ]
    )


@dataclass(slots=True)
class PredicateColumns:
    """All predicates of a table, columnwise: codes into names, and one typed operand each."""

    names: list[str]
    attribute: npt.NDArray[np.int32]
    operator: npt.NDArray[np.int8]
    type: npt.NDArray[np.int8]
    integer: npt.NDArray[np.int64]
    real: npt.NDArray[np.float64]
    text: pa.Array
    shape: pa.Array

    @classmethod
    def numeric(
        cls,
        names: list[str],
        attribute: npt.NDArray[np.int32],
        operator: npt.NDArray[np.int8],
        integer: npt.NDArray[np.int64],
    ) -> PredicateColumns:
        """Predicates whose operands are all ints, as the papers' workloads have them."""
        count = len(attribute)
        return cls(
            names,
            attribute,
            operator,
            np.full(count, TYPE_CODE["int"], np.int8),
            integer,
            np.zeros(count),
            pa.nulls(count, pa.string()),
            pa.nulls(count, PREDICATE.field("shape").type),
        )

    def to_arrow(self) -> pa.StructArray:
        """The predicates as the struct array that a compiled table holds."""
        whole = np.isin(self.type, _INTEGER_TYPES)
        real = self.type == TYPE_CODE["float"]
        # A bare kind test ("is") has a type but no operand.
        has_operand = self.operator != OPERATOR_CODE["is"]
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(self.attribute), pa.array(self.names, pa.string())),
            pa.DictionaryArray.from_arrays(pa.array(self.operator), pa.array(OPERATORS)),
            pa.DictionaryArray.from_arrays(pa.array(self.type, mask=self.type == NO_TYPE), pa.array(TYPES)),
            pa.array(self.integer, mask=~(whole & has_operand)),
            pa.array(self.real, mask=~(real & has_operand)),
            self.text,
            self.shape,
        ]
        return pa.StructArray.from_arrays(columns, fields=list(PREDICATE))


def assemble(
    ids: pa.Array,
    clause_offsets: npt.NDArray[np.int32],
    predicate_offsets: npt.NDArray[np.int32],
    predicates: PredicateColumns,
    *,
    owners: pa.Array | None = None,
    valid_from: pa.Array | None = None,
    valid_until: pa.Array | None = None,
) -> pa.Table:
    """The compiled table of subscriptions given columnwise.

    Subscription i has the clauses clause_offsets[i] to clause_offsets[i + 1]; clause j the predicates
    predicate_offsets[j] to predicate_offsets[j + 1].
    """
    inner = pa.ListArray.from_arrays(pa.array(predicate_offsets, pa.int32()), predicates.to_arrow())
    clauses = pa.ListArray.from_arrays(pa.array(clause_offsets, pa.int32()), inner)
    count = len(ids)
    columns = [
        ids,
        pa.nulls(count, pa.string()) if owners is None else owners,
        pa.nulls(count, MOMENT) if valid_from is None else valid_from,
        pa.nulls(count, MOMENT) if valid_until is None else valid_until,
        clauses,
    ]
    return pa.Table.from_arrays(columns, schema=compiled_schema(ids.type))


def id_array(ids: Sequence[SubscriptionId]) -> pa.Array:
    """Ids as Arrow holds them: int64 or string, not both."""
    first = next(iter(ids), "")
    id_type = pa.int64() if isinstance(first, int) else pa.string()
    try:
        return pa.array(ids, id_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise SubscriptionError("ids are all strings or all integers, not both") from None


class CompiledBuilder:
    """Collects subscriptions in normal form, one by one, into a compiled table. Not thread-safe."""

    def __init__(self) -> None:
        self._ids: list[SubscriptionId] = []
        self._owners: list[str | None] = []
        self._valid_from: list[datetime | None] = []
        self._valid_until: list[datetime | None] = []
        self._clause_ends = [0]
        self._predicates = PredicateRows()

    def __len__(self) -> int:
        return len(self._ids)

    def add(
        self, id: SubscriptionId, form: NormalForm, owner: str | None = None, validity: Validity = ALWAYS
    ) -> None:
        """Append one subscription."""
        self._ids.append(id)
        self._owners.append(owner)
        self._valid_from.append(validity.valid_from)
        self._valid_until.append(validity.valid_until)
        self._predicates.add(form)
        self._clause_ends.append(self._predicates.clause_count)

    def finish(self) -> pa.Table:
        """The compiled table of all that was added."""
        return assemble(
            id_array(self._ids),
            _offsets(self._clause_ends),
            self._predicates.offsets(),
            self._predicates.columns(),
            owners=pa.array(self._owners, pa.string()),
            valid_from=pa.array(self._valid_from, MOMENT),
            valid_until=pa.array(self._valid_until, MOMENT),
        )


class PredicateRows:
    """Predicates collected one by one, ready to become columns."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.clause_ends: list[int] = [0]
        self.attribute: list[int] = []
        self.operator: list[int] = []
        self.type: list[int] = []
        self.integer: list[int] = []
        self.real: list[float] = []
        self.text: list[str | None] = []
        self.shape: list[tuple[float, ...] | None] = []

    @property
    def clause_count(self) -> int:
        """How many clauses have been added."""
        return len(self.clause_ends) - 1

    def add(self, form: NormalForm) -> None:
        """Append the clauses of one subscription."""
        for clause in form.clauses:
            for attribute, constraint in clause.items():
                code = self.names.setdefault(attribute, len(self.names))
                for operator, value in rows_of(constraint):
                    self._append(code, OPERATOR_CODE[operator], operand_of(value))
            self.clause_ends.append(len(self.attribute))

    def _append(self, attribute: int, operator: int, operand: Operand) -> None:
        self.attribute.append(attribute)
        self.operator.append(operator)
        self.type.append(NO_TYPE if operand.type is None else TYPE_CODE[operand.type])
        self.integer.append(operand.integer)
        self.real.append(operand.real)
        self.text.append(operand.text)
        self.shape.append(operand.shape)

    def offsets(self) -> npt.NDArray[np.int32]:
        """Where each clause's predicates begin, and where the last one's end."""
        return _offsets(self.clause_ends)

    def columns(self) -> PredicateColumns:
        """The predicates columnwise."""
        return PredicateColumns(
            list(self.names),
            np.asarray(self.attribute, np.int32),
            np.asarray(self.operator, np.int8),
            np.asarray(self.type, np.int8),
            np.asarray(self.integer, np.int64),
            np.asarray(self.real, np.float64),
            pa.array(self.text, pa.string()),
            pa.array(self.shape, PREDICATE.field("shape").type),
        )


def _offsets(ends: list[int]) -> npt.NDArray[np.int32]:
    """Where each of consecutive runs begins, and where the last one ends, as Arrow counts."""
    capacity.check("predicates or clauses in one table", ends[-1], capacity.OFFSETS, IN_PARTS)
    return np.asarray(ends, np.int32)


def is_compiled(table: pa.Table) -> bool:
    """Whether a table is of the compiled form, rather than of texts."""
    return "clauses" in table.column_names


def conform(table: pa.Table) -> pa.Table:
    """A table of the compiled form in exactly our schema, as it may come from Parquet or Spark without it.

    Plain strings become dictionaries; columns that were left out become null.
    """
    if "id" not in table.column_names:
        raise SubscriptionError("a compiled table needs a column id")
    schema = compiled_schema(_id_type(table.schema.field("id").type))
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        columns.append(column if column.type == field.type else _cast(field, column))
    return pa.Table.from_arrays(columns, schema=schema)


def _id_type(found: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(found):
        return pa.int64()
    plain = found.value_type if pa.types.is_dictionary(found) else found
    strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    if any(test(plain) for test in strings):  # null: an empty table may not know the type of its ids
        return pa.string()
    raise SubscriptionError(f"the ids of a compiled table are strings or integers, found {found}")


def _cast(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        if field.name != "clauses":
            return column.cast(field.type)
        return pa.chunked_array([_conformed_clauses(chunk) for chunk in column.chunks], CLAUSES)
    except (pa.ArrowException, AttributeError, KeyError, TypeError) as error:
        said = f"column {field.name!r} of a compiled table is {column.type}, not {field.type}: {error}"
        raise SubscriptionError(said) from None


def _conformed_clauses(chunk: pa.ListArray) -> pa.ListArray:
    inner = chunk.values
    flat = inner.values
    columns = [_conformed_column(field, flat.field(field.name)) for field in PREDICATE]
    predicates = pa.StructArray.from_arrays(columns, fields=list(PREDICATE))
    return _listed(chunk, _listed(inner, predicates))


def _listed(like: pa.ListArray, values: pa.Array) -> pa.ListArray:
    """A list array cut as another one is, nulls included."""
    if not like.null_count:
        return pa.ListArray.from_arrays(like.offsets.cast(pa.int32()), values)
    offsets = pa.array(like.offsets.to_numpy(), pa.int32())
    return pa.ListArray.from_arrays(offsets, values, mask=like.is_null())


def _conformed_column(field: pa.Field, column: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(field.type):
        return column.cast(field.type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()).dictionary_encode().cast(field.type)
