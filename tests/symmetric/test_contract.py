"""Every store is put to every check; PostgreSQL in test_database.py."""

from __future__ import annotations

import itertools

import pytest

from harken.symmetric.reference import ReferenceStore
from harken.symmetric.stores import open_store
from tests.symmetric.checks import CHECKS

STORES = ("reference", "memory", "sqlite, ranges", "sqlite, paper")


@pytest.fixture
def make(request, tmp_path):
    """A function that opens an empty store."""
    numbers = itertools.count()
    kind, _, encoding = request.param.partition(", ")
    if kind == "sqlite":
        return lambda: open_store(f"sqlite:///{tmp_path}/{next(numbers)}.db", encoding=encoding)
    return ReferenceStore if kind == "reference" else lambda: open_store(None)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("make", STORES, indirect=True)
def test_the_store_obeys(make, check, seed):
    check(make, seed)
