"""What kernels return: nothing whose way into Python runs Python code, which an interrupt could stop.

For a named tuple numba calls its class, for an array it unpickles the array's class, and goes on whatever that
raised: an interrupt that came while the kernel ran made the process end with a segmentation fault.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import GenericAlias, NoneType
from typing import Any

import numba
import numpy as np
import pytest

import harken
from harken import SymmetricEngine, algorithms
from harken.bench.experiments.first_use import use

ROOT = Path(harken.__file__).parent
PLAIN = (int, float, bool, NoneType, np.integer, np.floating)


def kernels() -> list[Any]:
    """All that Python can call; parts are for other kernels only."""
    files = [file for file in sorted(ROOT.rglob("*.py")) if "from harken.jit import" in file.read_text()]
    names = [".".join(("harken", *file.relative_to(ROOT).with_suffix("").parts)) for file in files]
    found = {
        each
        for name in names
        for each in vars(importlib.import_module(name)).values()
        if isinstance(each, numba.core.dispatcher.Dispatcher)
    }
    return [each for each in found if not each.targetoptions.get("no_cpython_wrapper")]


def says_a_plain_one(said: object) -> bool:
    if isinstance(said, GenericAlias):
        return said.__origin__ is tuple and all(map(says_a_plain_one, said.__args__))
    return isinstance(said, type) and issubclass(said, PLAIN)


def is_a_plain_one(kind: numba.types.Type) -> bool:
    if isinstance(kind, numba.types.BaseAnonymousTuple):
        return all(map(is_a_plain_one, kind))
    return isinstance(kind, numba.types.Number | numba.types.Boolean | numba.types.NoneType)


def test_no_kernel_says_that_it_returns_an_array_or_a_named_tuple():
    said = {each.py_func: each.py_func.__annotations__["return"] for each in kernels()}
    assert len(said) > 50
    wrong = [
        f"{function.__module__}.{function.__name__}: {returned}"
        for function, returned in said.items()
        if not says_a_plain_one(eval(returned, function.__globals__) or NoneType)
    ]
    assert wrong == []


def test_no_kernel_that_was_compiled_returns_an_array_or_a_named_tuple():
    use(list(algorithms()), 1)
    engine = SymmetricEngine()
    engine.subscribe_many([(id, f"x BETWEEN {id} AND {id + 9}") for id in range(40)])
    engine.match("x = 20")
    compiled = [(each.py_func.__name__, kind) for each in kernels() for kind in each.nopython_signatures]
    assert len(compiled) > 20
    assert [(name, kind.return_type) for name, kind in compiled if not is_a_plain_one(kind.return_type)] == []


@pytest.mark.parametrize("returned", [np.zeros(3), ([1, 2]), "text"])
def test_what_is_not_plain_is_told_from_what_is(returned):
    assert not is_a_plain_one(numba.typeof(returned))
    assert not is_a_plain_one(numba.typeof((1, returned)))
    assert is_a_plain_one(numba.typeof((1, (2.5, True))))
