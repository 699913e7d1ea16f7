"""From the compiled form to predicate words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.matching.contract import Slots
from harken.matching.kernels.layout import Clauses
from harken.matching.kernels.numbering import number_pairs
from harken.matching.predicates.rows import Row
from harken.matching.predicates.table import PredicateTable
from harken.normal.columns import NestedClauses, codes, filled, places
from harken.normal.compiled import NO_TYPE, OPERATOR_CODE, TYPE_CODE, TYPES
from harken.normal.form import Clause, NormalForm
from harken.normal.operators import OPERATORS, Operand, OperandSource, constant_of, operand_of, rows_of

_BOUNDS = frozenset({"<", "<=", ">", ">="})
_FLOAT, _STRING, _INT, _DECIMAL = (TYPES.index(name) for name in ("float", "string", "int", "decimal"))
_NUMBERS = ("int", "float", "decimal")


_IS = OPERATORS.index("is")
_SPATIAL = [TYPES.index(name) for name in ("point", "box")]

_LONG = 8
"""Rows of a predicate, past which equal ones are not looked for."""

FEW = 8
"""Subscriptions up to so many are translated one by one: working on columns would take longer."""


def translate(batch: pa.RecordBatch, predicates: PredicateTable, slots: Slots) -> Clauses:
    """The clauses of compiled subscriptions, one for each slot, their predicates interned."""
    if batch.num_rows <= FEW:
        return translate_few(batch, predicates, slots)
    return translate_many(batch, predicates, slots)


def translate_few(batch: pa.RecordBatch, predicates: PredicateTable, slots: Slots) -> Clauses:
    """As `translate`, predicate by predicate."""
    told = batch.column("clauses").to_pylist()
    said = Said.one_by_one([_runs(map(_row_of, clause)) for clause in clauses] for clauses in told)
    return said.clauses(predicates.intern_many(said.distinct), slots)


def _runs_of(clause: Clause) -> list[tuple[Row, ...]]:
    runs = list[tuple[Row, ...]]()
    for attribute, constraint in clause.items():
        rows = [(attribute, operator, _operand(operator, value)) for operator, value in rows_of(constraint)]
        if len(rows) == 1:
            runs.append((rows[0],))
        else:
            runs += _runs(rows)
    return runs


def _operand(operator: str, value: OperandSource) -> Operand:
    if type(value) is int:  # as most are
        return Operand("int", value)
    return _plain(operator, operand_of(value))


def _row_of(fields: dict[str, Any]) -> Row:
    """One predicate as the table of predicates knows it. What belongs to its type is taken, and nothing else."""
    operator, kind = fields["operator"], fields["type"]
    if kind is None:
        operand = Operand()
    elif fields["shape"] is not None:
        operand = Operand(kind, shape=tuple(fields["shape"]))
    elif kind == "float":
        operand = Operand(kind, real=fields["real"] or 0.0)
    elif kind in ("string", "decimal"):
        operand = Operand(kind, text=fields["text"])
    else:
        operand = Operand(kind, fields["integer"] or 0)
    return fields["attribute"], operator, _plain(operator, operand)


def _plain(operator: str, operand: Operand) -> Operand:
    """An operand in the form that all have that ask for the same."""
    kind = operand.type
    if operator == "is":
        return Operand("float" if kind in _NUMBERS else kind)
    if kind == "int" or kind == "string":
        return operand
    # A float that is a whole number is the same constant as the int: give it the int's form.
    if kind == "float" and operand.real.is_integer() and abs(operand.real) < 2.0**63:
        return Operand("int", int(operand.real))
    return _plainest(operand.text) if kind == "decimal" else operand  # type: ignore[arg-type]  # it has a text


def _plainest(decimal: str) -> Operand:
    """A decimal's operand, or that of the int or float which is the same constant."""
    return operand_of(constant_of(Operand("decimal", text=decimal)))


def _runs(rows: Iterable[Row]) -> Iterator[tuple[Row, ...]]:
    """Rows by predicate: neighbours on one attribute that bound it, or list its values, are one."""
    for _, joined in groupby(enumerate(rows), key=lambda each: _run_key(*each)):
        run = [row for _, row in joined]
        yield tuple(run) if len(run) == 1 else tuple(sorted(set(run)))


def _run_key(at: int, row: Row) -> tuple[str, object]:
    if row[1] in _BOUNDS:
        return row[0], _BOUNDS
    return row[0], row[1] if row[1] == "in" else at


def translate_many(batch: pa.RecordBatch, predicates: PredicateTable, slots: Slots) -> Clauses:
    """As `translate`, column by column: each distinct predicate is looked up once."""
    said = Said.of(batch)
    return said.clauses(predicates.intern_many(said.distinct), slots)


class Said(NamedTuple):
    """What compiled subscriptions ask for, before their predicates have numbers."""

    distinct: list[tuple[Row, ...]]
    """What predicates say, each at least once."""
    words: npt.NDArray[np.int64]
    """By clause, which of these it asks for."""
    first: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    alone: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Said:
        """Of the rows of a table."""
        nested = NestedClauses.of(batch.column("clauses"))
        owner, clause_of = nested.subscription_of, nested.clause_of
        columns = _Columns(nested.predicates)
        run_first = _run_starts(columns, clause_of)
        distinct, words = _runs_in(columns, run_first)
        counts = (
            np.bincount(clause_of[run_first], minlength=len(owner)) if len(run_first) else np.zeros(len(owner))
        )
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(distinct, words, first, owner, nested.clause_counts[owner] == 1)

    @classmethod
    def of_forms(cls, forms: Iterable[NormalForm]) -> Said:
        """Of a few subscriptions in their normal form."""
        return cls.one_by_one(map(_runs_of, form.clauses) for form in forms)

    @classmethod
    def one_by_one(cls, told: Iterable[Iterable[Iterable[tuple[Row, ...]]]]) -> Said:
        """Of subscriptions, their clauses, of those the predicates, all one by one."""
        distinct, first = list[tuple[Row, ...]](), [0]
        owner, alone = list[int](), list[bool]()
        for at, clauses in enumerate(told):
            before = len(owner)
            for clause in clauses:
                distinct += clause
                first.append(len(distinct))
                owner.append(at)
            alone += [len(owner) - before == 1] * (len(owner) - before)
        return cls(
            distinct,
            np.arange(len(distinct)),
            np.array(first, np.int64),
            np.array(owner, np.int64),
            np.array(alone, np.bool_),
        )

    def sizes(self) -> tuple[int, int, int]:
        """The clauses, predicates and attributes, of which no two are taken to be the same, but for attributes."""
        attributes = {rows[0][0] for rows in self.distinct}
        return len(self.owner), sum(map(len, self.distinct)), len(attributes)

    def clauses(self, numbers: Sequence[int], slots: Slots) -> Clauses:
        """The clauses, now that the predicates have these numbers, and the subscriptions these slots."""
        words = np.array(numbers, np.int64)[self.words]
        return Clauses(self.first, words, np.asarray(slots, np.int64)[self.owner], self.alone)


class _Columns:
    """The predicates of a batch as numpy columns, operands as one integer each where that says it all."""

    def __init__(self, flat: pa.StructArray) -> None:
        self.flat = flat
        self.names = flat.field("attribute").dictionary.to_pylist()
        self.attribute = places(flat.field("attribute"))
        self.operator = codes(flat.field("operator"), OPERATOR_CODE)
        self.type = codes(flat.field("type"), TYPE_CODE)
        self._decimals: dict[int, Operand] = {}
        self._ints: dict[int, Operand] = {}
        self.operand = self._operands()

    def _operands(self) -> npt.NDArray[np.int64]:
        operand = filled(self.flat.field("integer")).astype(np.int64)
        floats = self.type == _FLOAT
        if floats.any():
            real = filled(self.flat.field("real"))[floats]
            # A float that is a whole number is the same constant as the int: give it the int's form.
            whole = (real == np.floor(real)) & (np.abs(real) < 2.0**63)
            operand[floats] = np.where(whole, 0, real.view(np.int64))
            places = np.flatnonzero(floats)[whole]
            operand[places] = real[whole].astype(np.int64)
            self.type[places] = _INT
        strings = self.type == _STRING
        if strings.any():
            encoded = self.flat.field("text").dictionary_encode()
            operand[strings] = filled(encoded.indices)[strings]
        decimals = np.flatnonzero((self.type == _DECIMAL) & (self.operator != OPERATORS.index("is")))
        if len(decimals):
            operand[decimals] = self._read_decimals(decimals)
        return np.asarray(operand, np.int64)

    def _read_decimals(self, rows: npt.NDArray[np.int64]) -> list[int]:
        """Read operands of decimals, of which there are few; a number for each distinct one."""
        texts = self.flat.field("text").take(pa.array(rows)).to_pylist()
        self._decimals = {at: _plainest(text) for at, text in zip(rows.tolist(), texts, strict=True)}
        numbers: dict[Operand, int] = {}
        return [numbers.setdefault(operand, len(numbers)) for operand in self._decimals.values()]

    def rows(self, places: npt.NDArray[np.int64]) -> list[Row]:
        """Predicates as the table of predicates knows them."""
        codes = self.operator[places].tolist()
        names = [self.names[at] for at in self.attribute[places].tolist()]
        operators = [OPERATORS[at] for at in codes]
        return list(zip(names, operators, self._operands_at(places, codes), strict=True))

    def _operands_at(self, places: npt.NDArray[np.int64], operators: list[int]) -> list[Operand]:
        types, integers = self.type[places], self.operand[places].tolist()
        texts = self._values_at("text", places) if (types == _STRING).any() else repeat(None)
        reals = self._values_at("real", places) if (types == _FLOAT).any() else repeat(0.0)
        shapes = self._values_at("shape", places) if np.isin(types, _SPATIAL).any() else repeat(None)
        columns = (places.tolist(), operators, types.tolist(), integers, reals, texts, shapes)
        return list(map(self._operand, *columns))

    def _values_at(self, field: str, places: npt.NDArray[np.int64]) -> list[Any]:
        values: list[Any] = self.flat.field(field).take(pa.array(places)).to_pylist()
        return values

    def _operand(
        self, at: int, operator: int, kind: int, integer: int, real: float, text: str | None, shape: Any
    ) -> Operand:
        """What belongs to a type is taken, and nothing else: the columns may hold more."""
        if kind == _INT and operator != _IS:
            # Attributes have ints in common, and what there is fewer of is sooner made and looked through.
            return self._ints.get(integer) or self._ints.setdefault(integer, Operand("int", integer))
        if kind == NO_TYPE:
            return Operand()
        if operator == _IS:
            return Operand("float" if TYPES[kind] in _NUMBERS else TYPES[kind])
        if kind == _STRING:
            return Operand("string", text=text)
        if kind == _FLOAT:
            return Operand("float", real=real)
        if kind == _DECIMAL:
            return self._decimals[at]
        if shape is not None:
            return Operand(TYPES[kind], shape=tuple(shape))
        return Operand(TYPES[kind], integer)


def _run_starts(columns: _Columns, clause_of: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where predicates begin: neighbours on one attribute that bound it, or list its values, are one."""
    bounds = np.isin(columns.operator, [OPERATORS.index(name) for name in _BOUNDS])
    members = columns.operator == OPERATORS.index("in")
    same = (clause_of[1:] == clause_of[:-1]) & (columns.attribute[1:] == columns.attribute[:-1])
    joined = same & ((bounds[1:] & bounds[:-1]) | (members[1:] & members[:-1]))
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(clause_of)), np.bool_), ~joined]))


def _runs_in(
    columns: _Columns, run_first: npt.NDArray[np.int64]
) -> tuple[list[tuple[Row, ...]], npt.NDArray[np.int64]]:
    """What predicates say, one for each run of rows; of equal runs only the first is read."""
    distinct = list[tuple[Row, ...]]()
    lengths = np.diff(np.append(run_first, len(columns.attribute)))
    words = np.zeros(len(run_first), np.int64)
    same_row = _same_rows(columns)
    for these in (lengths == 1, lengths > 1):
        first, length = run_first[these], lengths[these]
        group, leaders = _same_runs(same_row, first, length)
        words[these] = len(distinct) + group
        distinct += _read(columns, first[leaders], length[leaders])
    return distinct, words


def _read(
    columns: _Columns, first: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> list[tuple[Row, ...]]:
    """The predicates that runs of rows are."""
    ends = np.cumsum(lengths)
    begins = ends - lengths
    rows = columns.rows(np.repeat(first - begins, lengths) + np.arange(lengths.sum()))
    runs = (rows[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True))
    return [tuple(run) if len(run) == 1 else tuple(sorted(set(run))) for run in runs]


def _same_rows(columns: _Columns) -> npt.NDArray[np.int64]:
    """A number for each row, the same for the same predicate."""
    # Shapes are few, and each is a predicate of its own; everything else is told apart by two integers.
    shaped = columns.flat.field("shape").is_valid().to_numpy(zero_copy_only=False)
    code = (columns.attribute * 64 + columns.operator) * 16 + columns.type + 1
    numbers, _ = number_pairs(code, np.where(shaped, -1 - np.arange(len(code)), columns.operand))
    return numbers


def _same_runs(
    same_row: npt.NDArray[np.int64], first: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A number for each run of rows, from 0 in the order in which they come, the same for the same rows.

    And where each number comes first.
    """
    group, used = np.zeros(len(first), np.int64), 0
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        those = np.flatnonzero(lengths == length)
        if length > _LONG:
            same = np.arange(len(those))
        else:
            same = same_row[first[those]]
            for step in range(1, length):
                same, _ = number_pairs(same, same_row[first[those] + step])
        group[those] = used + same
        used += int(same.max()) + 1
    return number_pairs(group, group)
