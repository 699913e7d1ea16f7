"""The predicates of a compiled table as columns, and what each means for the points that are allowed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.model.schema import Schema
from harken.model.values import INT_MAX, INT_MIN, Type
from harken.normal.columns import Mask, codes, filled, nulls, places
from harken.normal.compiled import OPERATOR_CODE, TYPE_CODE
from harken.normal.operators import CALENDAR
from harken.symmetric.memory.forms import FIRST_OF_SHAPES, Form

ODD, POINT, MEMBER, LOW, HIGH, NOT, EXISTS, SHAPE = range(8)
"""What a predicate does: it cannot be read here, names the only value or one of several, bounds, excludes a value,
asks for any, or names the shape to which others lie."""

_ROLES = {"=": POINT, "in": MEMBER, ">": LOW, ">=": LOW, "<": HIGH, "<=": HIGH, "!=": NOT}
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
    attribute: npt.NDArray[np.int32]
    role: npt.NDArray[np.int8]
    form: npt.NDArray[np.int8]
    is_open: Mask
    is_discrete: Mask
    """Whether values have neighbours, so that an open bound can be said as a closed one."""
    integer: npt.NDArray[np.int64]
    real: npt.NDArray[np.float64]
    is_real: Mask
    text: pa.Array
    bounds: npt.NDArray[np.float64]
    """Of shapes: min_x, min_y, max_x, max_y. Empty if there are none."""

    def __len__(self) -> int:
        return len(self.attribute)

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
            [role == EXISTS, form == Form.STRING, form >= FIRST_OF_SHAPES, is_real],
            [np.True_, rows.field("text").is_valid(), has_bounds, ~nulls(rows.field("real")) & np.isfinite(real)],
            ~nulls(rows.field("integer")),
        )
        known &= np.array([bool(name) for name in names], np.bool_)[attribute]
        known &= _is_expected(declared, type_code, role, form)
        known &= ~(is_discrete & is_open & _is_extreme(integer, form))
        known &= (form != Form.BOOL) | (integer >> 1 == 0)
        role = np.where(known, role, ODD).astype(np.int8)
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


@cache
def _meanings() -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """By operator and type (the last ones are for null and unknown): role and form."""
    roles = np.full((len(OPERATOR_CODE) + 1, len(TYPE_CODE) + 1), ODD, np.int8)
    forms = np.zeros(roles.shape, np.int8)
    for operator, role in _ROLES.items():
        for name, form in _FORMS.items():
            roles[OPERATOR_CODE[operator], TYPE_CODE[name]] = role
            forms[OPERATOR_CODE[operator], TYPE_CODE[name]] = form
        if role not in (POINT, MEMBER):
            roles[OPERATOR_CODE[operator], TYPE_CODE["bool"]] = ODD
    for name, form in {"point": Form.POINTS, "box": Form.BOXES}.items():
        for operator, shapes in {"=": form, **_LYING}.items():
            roles[OPERATOR_CODE[operator], TYPE_CODE[name]] = SHAPE
            forms[OPERATOR_CODE[operator], TYPE_CODE[name]] = shapes
    roles[OPERATOR_CODE["is not null"], -1] = EXISTS
    forms[OPERATOR_CODE["is not null"], -1] = Form.ANYTHING
    return roles, forms


def _bounds(
    shapes: pa.ListArray, type_code: npt.NDArray[np.int64], form: npt.NDArray[np.int8]
) -> tuple[npt.NDArray[np.float64], Mask]:
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
    declared: npt.NDArray[np.int8],
    type_code: npt.NDArray[np.int64],
    role: npt.NDArray[np.int8],
    form: npt.NDArray[np.int8],
) -> Mask:
    """Whether the schema has the attribute and its type suits the constant. If not, reading it will say why."""
    shapes = [TYPE_CODE[name] for name in ("point", "box")]
    suits = (declared == type_code) | ((declared == TYPE_CODE["float"]) & (type_code == TYPE_CODE["int"]))
    lying = np.isin(form, list(_LYING.values())) & np.isin(declared, shapes)
    fits = (declared != _NO_TYPE) & (suits | lying | (role == EXISTS))
    return np.asarray((declared == _ANY_TYPE) | fits, np.bool_)


def _is_extreme(integer: npt.NDArray[np.int64], form: npt.NDArray[np.int8]) -> Mask:
    """Whether a value may have no neighbour: there is nothing after the last day."""
    extreme = np.zeros(len(integer), np.bool_)
    limits = {Form.NUMBER: (INT_MIN, INT_MAX)}
    limits |= {Form[named.name]: CALENDAR[named] for named in (Type.DATE, Type.TIMESTAMP)}
    for of_form, (first, last) in limits.items():
        extreme |= (form == of_form) & ((integer <= first) | (integer >= last))
    return extreme
