"""Every store is put to every check. Databases join in test_database.py's fixtures."""

from __future__ import annotations

import pytest

from harken.symmetric.reference import ReferenceStore
from tests.symmetric.checks import CHECKS


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_the_reference_obeys(check, seed):
    check(ReferenceStore, seed)
