"""What the packages offer is found when it is asked for, and costs nothing before."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ["harken", "harken.spark"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there_for_programs_and_for_type_checkers(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    told = [
        each.name
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for each in statement.names
    ]
    assert sorted(told) == sorted(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_are_attributes_and_nothing_else_is(package: str) -> None:
    code = f"""
import {package}
assert {package}.{"errors" if package == "harken" else "index"}.__name__
try:
    {package}.no_such_thing
except AttributeError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == f"module '{package}' has no attribute 'no_such_thing'\n"


def test_to_ask_for_a_version_takes_next_to_nothing() -> None:
    code = "import harken.spark.streaming.changes, sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "harken.spark.streaming.changes" in loaded
    assert {"harken.engine", "harken.spark.subscriptions.subscriptions", "pandas", "numba"}.isdisjoint(loaded)
