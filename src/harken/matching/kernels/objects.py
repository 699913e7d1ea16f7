"""What kernels ask of Python's own objects, by functions of the interpreter's stable interface.

An object is the address that `id` tells. Whoever asks holds the interpreter's lock, as a kernel does that is
compiled as `jit.holding`, and asks for objects that somebody owns until it is done: then no reference has to be
counted. Names and values that are compared are plain ones, and so is what they are compared with: so no code of
anybody else is run, and nobody can change a dictionary meanwhile.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_WORD, _INT, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_POINTER = _BYTE.as_pointer()

_CLASS_AT = object.__basicsize__ - 8
"""Where an object says what class it is of: in the last word of those that all objects have."""

WENT_WRONG = -1
"""Instead of an answer: memory ran out, or the stack. The error is passed over; Python will meet it again."""

_LESS_THAN = 0
"""As the interpreter numbers comparisons."""


def _intrinsic(typed: Any) -> Any:
    """What kernels call as a function without the first argument."""
    return intrinsic(typed)


def _call(builder: Any, name: str, returns: Any, *arguments: Any) -> Any:
    """Machine code that calls a function of the interpreter."""
    kind = ir.FunctionType(returns, [each.type for each in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _pointers(builder: Any, addresses: Any) -> list[Any]:
    return [builder.inttoptr(each, _POINTER) for each in addresses]


def _as_word(builder: Any, found: Any) -> Any:
    return builder.ptrtoint(found, _WORD) if isinstance(found.type, ir.PointerType) else found


def _pass_over_error(builder: Any) -> None:
    _call(builder, "PyErr_Clear", ir.VoidType())


def _generated(name: str, returns: Any) -> Any:
    """Makes the machine code of a call: of a function of objects, which returns an object, or 0, or a number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _as_word(builder, _call(builder, name, returns, *_pointers(builder, arguments)))

    return generate


def _of_one(name: str, returns: Any, found: Any = types.intp) -> Any:
    """An intrinsic: a function of one object."""
    generate = _generated(name, returns)

    def typed(typing_context: Any, one: Any) -> Any:
        return found(types.intp), generate

    return _intrinsic(typed)


whole = _of_one("PyLong_AsLongLong", _WORD)
"""whole(number): an int of 64 bits."""

real = _of_one("PyFloat_AsDouble", ir.DoubleType(), types.float64)
"""real(number): a float."""

size_of_list = _of_one("PyList_Size", _WORD)
size_of_dictionary = _of_one("PyDict_Size", _WORD)
size_of_text = _of_one("PyUnicode_GetLength", _WORD)


@_intrinsic
def class_of(typing_context: Any, value: Any) -> Any:
    """The class of an object."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = builder.add(arguments[0], _WORD(_CLASS_AT))
        return builder.load(builder.inttoptr(at, _WORD.as_pointer()))

    return types.intp(types.intp), generate


@_intrinsic
def word_at(typing_context: Any, words: Any, place: Any) -> Any:
    """A word of an array of words, which begins at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = builder.inttoptr(arguments[0], _WORD.as_pointer())
        return builder.load(builder.gep(words, [arguments[1]]))

    return types.intp(types.intp, types.intp), generate


@_intrinsic
def next_item(typing_context: Any, dictionary: Any, position: Any) -> Any:
    """From a position on, where the next item is looked for, its key and its value; -1 at the end."""
    made = types.UniTuple(types.intp, 3)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        next_position = cgutils.alloca_once_value(builder, arguments[1])
        key, value = (cgutils.alloca_once(builder, _POINTER) for _ in range(2))
        (of,) = _pointers(builder, arguments[:1])
        found = _call(builder, "PyDict_Next", _INT, of, next_position, key, value)
        is_end = builder.icmp_signed("==", found, _INT(0))
        position = builder.select(is_end, _WORD(-1), builder.load(next_position))
        item = [builder.ptrtoint(builder.load(each), _WORD) for each in (key, value)]
        return context.make_tuple(builder, made, [position, *item])

    return made(types.intp, types.intp), generate


@_intrinsic
def item_of(typing_context: Any, dictionary: Any, key: Any) -> Any:
    """What a dictionary has for a key, or 0, or WENT_WRONG."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = _call(builder, "PyDict_GetItemWithError", _POINTER, *_pointers(builder, arguments))
        answer = cgutils.alloca_once_value(builder, _as_word(builder, found))
        with builder.if_then(builder.icmp_signed("==", builder.load(answer), _WORD(0))):
            error = _as_word(builder, _call(builder, "PyErr_Occurred", _POINTER))
            with builder.if_then(builder.icmp_signed("!=", error, _WORD(0))):
                _pass_over_error(builder)
                builder.store(_WORD(WENT_WRONG), answer)
        return builder.load(answer)

    return types.intp(types.intp, types.intp), generate


@_intrinsic
def is_less(typing_context: Any, first: Any, second: Any) -> Any:
    """Whether the first of two numbers, or of two texts, is less than the other: 1, 0 or WENT_WRONG."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = _pointers(builder, arguments)
        found = _call(builder, "PyObject_RichCompareBool", _INT, *of, _INT(_LESS_THAN))
        with builder.if_then(builder.icmp_signed("==", found, _INT(WENT_WRONG))):
            _pass_over_error(builder)
        return builder.sext(found, _WORD)

    return types.intp(types.intp, types.intp), generate


@_intrinsic
def listed_at(typing_context: Any, several: Any, place: Any) -> Any:
    """What a list has at a place."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (of,) = _pointers(builder, arguments[:1])
        return _as_word(builder, _call(builder, "PyList_GetItem", _POINTER, of, arguments[1]))

    return types.intp(types.intp, types.intp), generate


@_intrinsic
def fits_64_bits(typing_context: Any, number: Any) -> Any:
    """Whether an int is one of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        beyond = cgutils.alloca_once(builder, _INT)
        _call(builder, "PyLong_AsLongLongAndOverflow", _WORD, *_pointers(builder, arguments), beyond)
        return builder.icmp_signed("==", builder.load(beyond), _INT(0))

    return types.boolean(types.intp), generate


@_intrinsic
def put(typing_context: Any, dictionary: Any, key: Any, value: Any) -> Any:
    """Have a value in a dictionary; False if there is no memory for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        failed = _call(builder, "PyDict_SetItem", _INT, *_pointers(builder, arguments))
        is_there = builder.icmp_signed("==", failed, _INT(0))
        with builder.if_then(builder.not_(is_there)):
            _pass_over_error(builder)
        return is_there

    return types.boolean(types.intp, types.intp, types.intp), generate


@_intrinsic
def answer_of(typing_context: Any, value: Any, method: Any) -> Any:
    """What a method without arguments answers, of a name and of an object that outlive the call; 0 if it failed.

    Truths do: nothing else is to be asked for.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        this = cgutils.alloca_once_value(builder, builder.inttoptr(arguments[0], _POINTER))
        name, none = builder.inttoptr(arguments[1], _POINTER), builder.inttoptr(_WORD(0), _POINTER)
        found = _call(builder, "PyObject_VectorcallMethod", _POINTER, name, this, _WORD(1), none)
        is_there = builder.icmp_signed("!=", _as_word(builder, found), _WORD(0))
        with builder.if_else(is_there) as (answered, failed):
            with answered:
                _call(builder, "Py_DecRef", ir.VoidType(), found)
            with failed:
                _pass_over_error(builder)
        return _as_word(builder, found)

    return types.intp(types.intp, types.intp), generate


@_intrinsic
def let_others_run(typing_context: Any) -> Any:
    """Give the interpreter's lock away; what it takes to have it back."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _as_word(builder, _call(builder, "PyEval_SaveThread", _POINTER))

    return types.intp(), generate


@_intrinsic
def run_again(typing_context: Any, thread: Any) -> Any:
    """Wait for the interpreter's lock."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _call(builder, "PyEval_RestoreThread", ir.VoidType(), *_pointers(builder, arguments))
        return context.get_dummy_value()

    return types.void(types.intp), generate
