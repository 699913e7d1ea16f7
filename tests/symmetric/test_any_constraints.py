"""Whatever constraints Hypothesis comes up with, every store finds what the reference finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken.language import to_text
from harken.model.expressions import Expression
from harken.symmetric.contract import Held, Store
from harken.symmetric.reference import ReferenceStore
from harken.symmetric.semantics import boxes_of
from harken.symmetric.stores import open_store
from tests.strategies import FREE, TYPED, expressions
from tests.symmetric.checks import SIDES, agree
from tests.symmetric.conftest import Backend
from tests.symmetric.constraints import is_sayable

CONSTRAINTS = st.lists(
    (expressions(FREE, max_leaves=5) | expressions(TYPED, max_leaves=5)).filter(is_sayable), max_size=8
)
EXAMPLES = {"memory": 150, "sqlite": 40, "postgresql": 25}


@pytest.fixture(
    params=["memory", "sqlite, ranges", "sqlite, paper", "postgresql, ranges", "postgresql, paper"], scope="module"
)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    """A store that examples leave empty."""
    kind, _, encoding = request.param.partition(", ")
    if kind == "memory":
        yield kind, open_store(None)
        return
    path: Path = tmp_path_factory.mktemp("any") / "any.db"
    backend = Backend(kind, f"sqlite:///{path}" if kind == "sqlite" else request.getfixturevalue("postgres"))
    yield kind, backend.empty(encoding=encoding)
    backend.clean()


def test_any_constraints_are_found_as_the_reference_finds_them(store: tuple[str, Store]) -> None:
    kind, opened = store

    @settings(max_examples=EXAMPLES[kind], suppress_health_check=list(HealthCheck))
    @given(CONSTRAINTS, CONSTRAINTS)
    def agrees(held: list[Expression], asked: list[Expression]) -> None:
        judge = ReferenceStore()
        coming = [Held(at, boxes_of(each), to_text(each)) for at, each in enumerate(held)]
        try:
            for side in SIDES:
                found = opened.put(side, coming, "publication")
                assert set(found) == set(judge.put(side, coming, "publication"))
            agree(opened, judge, [boxes_of(each) for each in asked])
        finally:
            for side in SIDES:
                opened.remove(side, opened.ids(side))

    agrees()
