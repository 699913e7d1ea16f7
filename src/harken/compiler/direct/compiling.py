"""Many texts to columns: the kernels are given room, and more where it is short, and what they wrote is taken."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harken.compiler.columns import ClauseColumns
from harken.compiler.direct.layout import workspace
from harken.compiler.direct.names import Names, enlarged, enter_all, room_for
from harken.compiler.direct.parsing import Grammar, grammar_of
from harken.compiler.direct.running import DONE, MORE_NAMES, MORE_OUTPUT, compile_from
from harken.compiler.direct.writing import Output, copy_strings, enlarged_output, output
from harken.language.tables import tables
from harken.model import capacity
from harken.model.limits import Limits
from harken.model.schema import Schema
from harken.normal.compiled import IN_PARTS, PREDICATE, TYPE_CODE, PredicateColumns

_FIRST_NAMES, _PREDICATES_OF_A_TEXT = 1_024, 4


def compile_directly(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], schema: Schema | None, limits: Limits
) -> tuple[npt.NDArray[np.bool_], ClauseColumns]:
    """Which texts could be compiled so, and their clauses; text i is data[offsets[i] : offsets[i + 1]]."""
    texts = len(offsets) - 1
    names = room_for(_FIRST_NAMES)
    if schema is not None:
        data, names = _declared(data, schema)
    work = workspace(limits)
    out = output(_PREDICATES_OF_A_TEXT * texts, texts, texts)
    at, short_of = 0, MORE_OUTPUT
    while short_of != DONE:
        at, short_of = compile_from(_grammar(), names, work, out, data, offsets, at)
        if short_of == MORE_NAMES:
            names = enlarged(names, data)
        elif short_of == MORE_OUTPUT:
            out = enlarged_output(out)
    return out.clause_count >= 0, _columns(data, names, out)


@cache
def _grammar() -> Sequence[Grammar]:
    return grammar_of(tables())


def _declared(data: npt.NDArray[np.uint8], schema: Schema) -> tuple[npt.NDArray[np.uint8], Names]:
    """The names of a schema and no others; they stand behind the texts."""
    encoded = [name.encode("utf-8", "surrogatepass") for name in schema]
    sizes = np.array([len(each) for each in encoded], np.int64)
    past = len(data) + np.cumsum(sizes)
    data = np.concatenate([data, np.frombuffer(b"".join(encoded), np.uint8)])
    names = room_for(len(encoded), closed=True)
    enter_all(names, data, past - sizes, past)
    names.declared[: len(encoded)] = [TYPE_CODE[declared.value] for declared in schema.values()]
    return data, names


def _columns(data: npt.NDArray[np.uint8], names: Names, out: Output) -> ClauseColumns:
    predicates, clauses = int(out.used[0]), int(out.used[1])
    known, attribute = _in_use(data, names, out.attribute[:predicates])
    return ClauseColumns(
        out.clause_count[out.clause_count >= 0],
        out.predicate_count[:clauses],
        PredicateColumns(
            known,
            attribute,
            out.operator[:predicates],
            out.type[:predicates],
            out.integer[:predicates],
            out.real[:predicates],
            _strings(data, out.begin[:predicates], out.past[:predicates]),
            pa.nulls(predicates, PREDICATE.field("shape").type),
        ),
    )


def _in_use(
    data: npt.NDArray[np.uint8], names: Names, attribute: npt.NDArray[np.int32]
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """The names that predicates have, and these with them: texts that were declined have others besides."""
    used = np.flatnonzero(np.bincount(attribute, minlength=int(names.used[0])))
    places = np.zeros(int(names.used[0]), np.int32)
    places[used] = np.arange(len(used))
    raw = data.tobytes()
    bounds = zip(names.begin[used].tolist(), names.past[used].tolist(), strict=True)
    return [raw[begin:past].decode() for begin, past in bounds], places[attribute]


def _strings(data: npt.NDArray[np.uint8], begin: npt.NDArray[np.int64], past: npt.NDArray[np.int64]) -> pa.Array:
    """The operands that are strings, null where there is none."""
    is_string = past >= 0
    size = int((past - begin)[is_string].sum())
    if not is_string.any():
        return pa.nulls(len(begin), pa.string())
    capacity.check("bytes of strings in one chunk", size, capacity.OFFSETS, IN_PARTS)
    text, offsets = np.zeros(size, np.uint8), np.zeros(len(begin) + 1, np.int32)
    copy_strings(data, begin, past, text, offsets)
    valid = np.packbits(is_string, bitorder="little")
    buffers = (pa.py_buffer(offsets), pa.py_buffer(text), pa.py_buffer(valid))
    return pa.StringArray.from_buffers(len(begin), *buffers)
