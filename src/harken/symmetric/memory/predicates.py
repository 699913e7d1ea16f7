"""The predicates of a compiled table as columns: what each says of the points that are allowed, and its codes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harken.model.schema import Schema
from harken.model.values import INT_MAX, INT_MIN, Type
from harken.normal.columns import codes, filled, nulls, places
from harken.normal.compiled import OPERATOR_CODE, TYPE_CODE
from harken.normal.operators import CALENDAR
from harken.symmetric.memory.constants import Constants
from harken.symmetric.memory.forms import FIRST_OF_SHAPES, Form
from harken.symmetric.memory.kernels.layout import Floats, Mask, Places, Words

Codes = npt.NDArray[np.int8]


class Role(IntEnum):
    """What a predicate does."""

    ODD = 0
    """It cannot be read here."""
    POINT = 1
    """It names the only value."""
    MEMBER = 2
    """It names one of several values."""
    LOW = 3
    HIGH = 4
    NOT = 5
    """It excludes a value."""
    EXISTS = 6
    SHAPE = 7
    """It names the shape to which others lie."""


UNBOUNDED = -1
"""In place of the predicate that a bound comes from."""

_TOO_LARGE = 2.0**63

_ROLES = {
    "=": Role.POINT,
    "in": Role.MEMBER,
    ">": Role.LOW,
    ">=": Role.LOW,
    "<": Role.HIGH,
    "<=": Role.HIGH,
    "!=": Role.NOT,
}
_OPEN = [OPERATOR_CODE[name] for name in ("<", ">", "!=")]
_LYING = {"overlaps": Form.OVER, "within": Form.WITHIN, "contains": Form.AROUND}
_FORMS = {
    "int": Form.NUMBER,
    "float": Form.NUMBER,
    "string": Form.STRING,
    "bool": Form.BOOL,
    "date": Form.DATE,
    "timestamp": Form.TIMESTAMP,
}


@dataclass(slots=True)
class CompiledPredicates:
    """One entry for each predicate of a table."""

    names: list[str]
    attribute: Words
    role: Codes
    form: Codes
    is_open: Mask
    is_discrete: Mask
    """Whether values have neighbours, so that an open bound can be said as a closed one."""
    integer: Places
    real: Floats
    is_real: Mask
    text: pa.Array
    bounds: Floats
    """Of shapes: min_x, min_y, max_x, max_y. Empty if there are none."""

    @classmethod
    def of(cls, rows: pa.StructArray, schema: Schema | None) -> CompiledPredicates:
        """The predicates of a struct array of the compiled form. What is wrong with one makes it ODD."""
        names = [*rows.field("attribute").dictionary.to_pylist(), ""]  # the last one is for null
        # A dictionary may have a name twice.
        number = {name: at for at, name in enumerate(names)}
        attribute = np.array([number[name] for name in names], np.int32)[places(rows.field("attribute"))]
        operator, type_code = codes(rows.field("operator"), OPERATOR_CODE), codes(rows.field("type"), TYPE_CODE)
        roles, forms = _meanings()
        role, form = roles[operator, type_code], forms[operator, type_code]
        integer, real = filled(rows.field("integer")), filled(rows.field("real"))
        is_real = type_code == TYPE_CODE["float"]
        bounds, has_bounds = _bounds(rows.field("shape"), type_code, form)
        declared = np.array([_declared(name, schema) for name in names], np.int8)[attribute]
        is_discrete = np.isin(form, [Form.DATE, Form.TIMESTAMP])
        is_discrete |= (form == Form.NUMBER) & (declared == TYPE_CODE["int"])
        is_open = np.isin(operator, _OPEN)
        known = np.select(
            [role == Role.EXISTS, form == Form.STRING, form >= FIRST_OF_SHAPES, is_real],
            [np.True_, rows.field("text").is_valid(), has_bounds, ~nulls(rows.field("real")) & np.isfinite(real)],
            ~nulls(rows.field("integer")),
        )
        known &= np.array([bool(name) for name in names], np.bool_)[attribute]
        known &= _is_expected(declared, type_code, role, form)
        known &= ~(is_discrete & is_open & _is_extreme(integer, form))
        known &= (form != Form.BOOL) | (integer >> 1 == 0)
        role = np.where(known, role, Role.ODD).astype(np.int8)
        text = rows.field("text")
        return cls(names, attribute, role, form, is_open, is_discrete, integer, real, is_real, text, bounds)

    def only(self, kept: Mask) -> CompiledPredicates:
        """Some of them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, column in values.items():
            if isinstance(column, pa.Array):
                values[name] = column.filter(pa.array(kept))
            elif isinstance(column, np.ndarray) and len(column) == len(kept):
                values[name] = column[kept]
        return CompiledPredicates(**values)

    def coded(self, form: Form, is_second: bool, low: Places, high: Places) -> tuple[Constants, Words, Words]:
        """The constants of one axis, and the codes of the bounds of rows; `is_second` if it is the axis of y.

        `low` and `high` say from which predicates the bounds come.
        """
        has_low, has_high = low != UNBOUNDED, high != UNBOUNDED
        # Of a point, both bounds are the same: looked up once.
        is_same = has_low & (low == high) if form < FIRST_OF_SHAPES else np.zeros(len(low), np.bool_)
        has_high &= ~is_same
        source = np.concatenate([low[has_low], high[has_high]])
        # Where the neighbour of an open bound lies: after lower bounds, before upper ones.
        step = np.ones(len(source), np.int64)
        step[np.count_nonzero(has_low) :] = -1
        constants, ranks = self._ranked(form, is_second, source, step)
        ends = 2 * ranks + 1 + self._nudges(form, source, step)
        low_codes = np.zeros(len(low), np.int32)
        high_codes = np.full(len(high), 2 * constants.counts[0], np.int32)
        low_codes[has_low], high_codes[has_high] = ends[step > 0], ends[step < 0]
        high_codes[is_same] = low_codes[is_same]
        return constants, low_codes, high_codes

    def _ranked(self, form: Form, is_second: bool, source: Places, step: Places) -> tuple[Constants, Places]:
        if form is Form.STRING:
            return Constants.of_texts(self._texts(source, step))
        if form >= FIRST_OF_SHAPES:
            return Constants.of_numbers(self.bounds[source, np.where(step > 0, 0, 2) + is_second])
        return Constants.of_numbers(*self._positions(source, step))

    def _nudges(self, form: Form, source: Places, step: Places) -> Places:
        """Open bounds are just beside the constant, unless that has become the neighbour."""
        is_nudged = self.is_open[source] & ~self.is_discrete[source]
        if form is Form.STRING:
            is_nudged &= step < 0
        return np.where(is_nudged, step, 0)

    def _texts(self, source: Places, step: Places) -> pa.Array:
        """Strings; the one after a string is that and a zero character."""
        texts = self.text.take(pa.array(source)).cast(pa.large_string())
        is_after = self.is_open[source] & (step > 0)
        if not is_after.any():
            return texts
        zero, nothing = pa.scalar("\0", pa.large_string()), pa.scalar("", pa.large_string())
        return pc.if_else(pa.array(is_after), pc.binary_join_element_wise(texts, zero, nothing), texts)

    def _positions(self, source: Places, step: Places) -> tuple[Floats, Floats]:
        """Keys and rests, as in `forms`."""
        is_shifted = self.is_open[source] & self.is_discrete[source]
        whole = self.integer[source] + np.where(is_shifted, step, 0)
        keys = whole.astype(np.float64)
        # 2^63 is the nearest float of the largest ints, but no int itself.
        large = keys >= _TOO_LARGE
        rests = (whole - np.where(large, 0.0, keys).astype(np.int64)).astype(np.float64)
        rests[large] = ((whole[large] - (2**63 - 1)) - 1).astype(np.float64)
        is_real = self.is_real[source]
        if is_real.any():
            keys[is_real], rests[is_real] = self.real[source][is_real], 0
        return keys, rests


@cache
def _meanings() -> tuple[Codes, Codes]:
    """By operator and type (the last ones are for null and unknown): role and form."""
    roles = np.full((len(OPERATOR_CODE) + 1, len(TYPE_CODE) + 1), Role.ODD, np.int8)
    forms = np.zeros(roles.shape, np.int8)
    for operator, role in _ROLES.items():
        for name, form in _FORMS.items():
            roles[OPERATOR_CODE[operator], TYPE_CODE[name]] = role
            forms[OPERATOR_CODE[operator], TYPE_CODE[name]] = form
        if role not in (Role.POINT, Role.MEMBER):
            roles[OPERATOR_CODE[operator], TYPE_CODE["bool"]] = Role.ODD
    for name, form in {"point": Form.POINTS, "box": Form.BOXES}.items():
        for operator, shapes in {"=": form, **_LYING}.items():
            roles[OPERATOR_CODE[operator], TYPE_CODE[name]] = Role.SHAPE
            forms[OPERATOR_CODE[operator], TYPE_CODE[name]] = shapes
    roles[OPERATOR_CODE["is not null"], -1] = Role.EXISTS
    forms[OPERATOR_CODE["is not null"], -1] = Form.ANYTHING
    return roles, forms


def _bounds(shapes: pa.ListArray, type_code: Places, form: Codes) -> tuple[Floats, Mask]:
    """The bounds of shapes, and where there are sound ones."""
    sound = np.zeros(len(shapes), np.bool_)
    spatial = np.flatnonzero(form >= FIRST_OF_SHAPES)
    if not len(spatial):
        return np.zeros((0, 4)), sound
    bounds = np.zeros((len(shapes), 4))
    offsets, values = shapes.offsets.to_numpy(), shapes.values.to_numpy(zero_copy_only=False)
    lengths = np.diff(offsets)
    for name, wanted, corners in (("point", 2, [0, 1, 0, 1]), ("box", 4, [0, 1, 2, 3])):
        rows = spatial[(type_code[spatial] == TYPE_CODE[name]) & (lengths[spatial] == wanted)]
        bounds[rows] = values[offsets[rows][:, None] + corners]
        sound[rows] = True
    sound &= np.isfinite(bounds).all(axis=1)
    sound &= (bounds[:, 0] <= bounds[:, 2]) & (bounds[:, 1] <= bounds[:, 3])
    return bounds + 0.0, sound & shapes.is_valid().to_numpy(zero_copy_only=False)


_ANY_TYPE, _NO_TYPE = -1, -2


def _declared(name: str, schema: Schema | None) -> int:
    if schema is None:
        return _ANY_TYPE
    declared = schema.get(name)
    return _NO_TYPE if declared is None else TYPE_CODE[declared.value]


def _is_expected(
    declared: Codes,
    type_code: Places,
    role: Codes,
    form: Codes,
) -> Mask:
    """Whether the schema has the attribute and its type suits the constant. If not, reading it will say why."""
    shapes = [TYPE_CODE[name] for name in ("point", "box")]
    suits = (declared == type_code) | ((declared == TYPE_CODE["float"]) & (type_code == TYPE_CODE["int"]))
    lying = np.isin(form, list(_LYING.values())) & np.isin(declared, shapes)
    fits = (declared != _NO_TYPE) & (suits | lying | (role == Role.EXISTS))
    return np.asarray((declared == _ANY_TYPE) | fits, np.bool_)


def _is_extreme(integer: Places, form: Codes) -> Mask:
    """Whether a value may have no neighbour: there is nothing after the last day."""
    extreme = np.zeros(len(integer), np.bool_)
    limits = {Form.NUMBER: (INT_MIN, INT_MAX)}
    limits |= {Form[named.name]: CALENDAR[named] for named in (Type.DATE, Type.TIMESTAMP)}
    for of_form, (first, last) in limits.items():
        extreme |= (form == of_form) & ((integer <= first) | (integer >= last))
    return extreme
