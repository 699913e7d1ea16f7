"""From the compiled form to what a store holds, a million rows in seconds.

What a clause asks of one attribute is read once, however often it comes: of `maker = 'Sony' AND price <= 9` and
`maker = 'Sony' AND price <= 8` in the compiled form, `maker = 'Sony'` becomes an expression, and that points, only
the first time. A row that cannot be read attribute by attribute, or in which something is wrong, is read as one
expression, so that errors are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from harken.errors import HarkenError
from harken.language import to_text
from harken.model.limits import DEFAULT_LIMITS
from harken.model.schema import Schema
from harken.normal.columns import NestedClauses
from harken.normal.compiled import conform
from harken.normal.decompiled import expressions_of, predicate_of
from harken.normal.operators import expression_of
from harken.symmetric.contract import Held
from harken.symmetric.pointsets import PointSet
from harken.symmetric.semantics import Boxes, boxes_of
from harken.written import limits_of_kept

_ROWS = 20_000
"""Rows that are taken apart together."""

_REMEMBERED = 50_000
"""Terms that are known at a time."""

_LIMITS = limits_of_kept(DEFAULT_LIMITS)
"""What is compiled was within limits when it was read."""

_FIELDS = ("attribute", "operator", "type", "integer", "real", "text", "shape")

_Predicate: TypeAlias = tuple[object, ...]
"""A predicate of the compiled form, field by field."""


class _NotPlainError(Exception):
    """A row that has to be read as one expression."""


class _Term(NamedTuple):
    """What the predicates of a clause on one attribute say: in words, and as points, None if they contradict."""

    attribute: str
    text: str
    points: PointSet | None
    is_membership: bool


def held_of(table: pa.Table, schema: Schema | None) -> Iterator[Held]:
    """The constraints of a compiled table; ConstraintError if one cannot be said in points."""
    reader = _Reader(schema)
    for batch in conform(table).to_batches(max_chunksize=_ROWS):
        columns = NestedClauses.of(batch.column("clauses"))
        predicates = _predicates(columns.predicates)
        sizes = iter(columns.predicate_counts.tolist())
        ids, begins, ends = (batch.column(name).to_pylist() for name in ("id", "valid_from", "valid_until"))
        for row, count in enumerate(columns.clause_counts.tolist()):
            clauses = [list(islice(predicates, size)) for size in islice(sizes, count)]
            try:
                boxes, text = reader.read(clauses)
            except (_NotPlainError, HarkenError, TypeError, ValueError, OverflowError):
                [expression] = expressions_of(pa.Table.from_batches([batch.slice(row, 1)]))
                boxes, text = boxes_of(expression, schema), to_text(expression)
            yield Held(ids[row], boxes, text, ends[row], begins[row])


def _predicates(flat: pa.StructArray) -> Iterator[_Predicate]:
    columns = dict(zip(flat.type.names, flat.flatten(), strict=True))
    words = [columns[each].dictionary_decode().to_pylist() for each in ("attribute", "operator", "type")]
    values = [columns[each].to_pylist() for each in ("integer", "real", "text")]
    shapes = [None if each is None else tuple(each) for each in columns["shape"].to_pylist()]
    return zip(*words, *values, shapes, strict=True)


class _Reader:
    """Reads clauses attribute by attribute, and remembers what terms say. Not thread-safe."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self._terms: dict[_Predicate, _Term] = {}

    def read(self, clauses: Sequence[Sequence[_Predicate]]) -> tuple[Boxes, str]:
        """Boxes and text of a constraint, as `boxes_of` and `to_text` have them."""
        boxes, texts = [], []
        for clause in clauses:
            terms = [self._term(tuple(group)) for _, group in groupby(clause, itemgetter(0))]
            terms.sort(key=lambda term: term.is_membership)  # which are written last
            box = {term.attribute: term.points for term in terms if term.points is not None}
            if len({term.attribute for term in terms}) < len(terms):
                raise _NotPlainError
            if len(box) == len(terms):
                boxes.append(box)
            texts.append(" AND ".join(term.text for term in terms) or "TRUE")
        return Boxes(tuple(boxes)), " OR ".join(texts) or "FALSE"

    def _term(self, predicates: tuple[_Predicate, ...]) -> _Term:
        if predicates not in self._terms:
            if len(self._terms) >= _REMEMBERED:
                self._terms.clear()
            self._terms[predicates] = self._read(predicates)
        return self._terms[predicates]

    def _read(self, predicates: tuple[_Predicate, ...]) -> _Term:
        said = [predicate_of(dict(zip(_FIELDS, each, strict=True))) for each in predicates]
        expression = expression_of([said])
        boxes = boxes_of(expression, self._schema, _LIMITS).boxes
        members = [operator == "in" for _, operator, _ in said]
        if len(boxes) > 1 or any(members) != all(members):
            raise _NotPlainError
        attribute = said[0][0]
        return _Term(attribute, to_text(expression), boxes[0][attribute] if boxes else None, all(members))
