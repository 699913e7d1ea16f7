"""Subscriptions come and go in any order Hypothesis can think of; matches are right at every moment."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from harken import Engine, algorithms
from harken.model.evaluation import truth
from tests.strategies import events, expressions

pytestmark = pytest.mark.kernel


@st.composite
def conditions(draw):
    """Expressions, under a name short enough to report."""
    return draw(expressions(max_leaves=5))


@st.composite
def happenings(draw):
    """Events, likewise."""
    return draw(events())


def machine_for(algorithm: str) -> type[RuleBasedStateMachine]:
    class Churn(RuleBasedStateMachine):
        ids = Bundle("ids")

        def __init__(self) -> None:
            super().__init__()
            self.engine = Engine(algorithm)
            self.model = {}
            self.next_id = 0

        @rule(target=ids, expression=conditions())
        def subscribe(self, expression):
            self.next_id += 1
            self.engine.subscribe(self.next_id, expression)
            self.model[self.next_id] = expression
            return self.next_id

        @rule(target=ids, several=st.lists(conditions(), min_size=1, max_size=6))
        def subscribe_many(self, several):
            rows = {self.next_id + 1 + at: expression for at, expression in enumerate(several)}
            self.next_id += len(several)
            self.engine.subscribe_many(rows.items())
            self.model |= rows
            return multiple(*rows)

        @rule(id=consumes(ids))
        def unsubscribe(self, id):
            self.engine.unsubscribe(id)
            del self.model[id]

        @rule(id=ids, expression=conditions())
        def replace(self, id, expression):
            self.engine.subscribe(id, expression, replace=True)
            self.model[id] = expression

        @rule()
        def save_and_load(self):
            with tempfile.TemporaryDirectory() as folder:
                self.engine.save(Path(folder) / "engine")
                self.engine = Engine.load(Path(folder) / "engine")

        @rule(event=happenings())
        def match(self, event):
            expected = sorted(id for id, expression in self.model.items() if truth(expression, event) is True)
            assert sorted(self.engine.match(event)) == expected

        @rule(several=st.lists(happenings(), max_size=5))
        def match_batch(self, several):
            table = self.engine.match_batch(several)
            found = sorted(zip(*table.to_pydict().values(), strict=True))
            assert found == sorted(
                (row, id)
                for row, event in enumerate(several)
                for id, expression in self.model.items()
                if truth(expression, event) is True
            )

        @invariant()
        def holds_what_the_model_holds(self):
            assert len(self.engine) == len(self.model)
            assert set(self.engine) == set(self.model)

    return Churn


@pytest.mark.parametrize("algorithm", algorithms())
def test_churn_never_confuses(algorithm):
    run_state_machine_as_test(
        machine_for(algorithm), settings=settings(max_examples=30, stateful_step_count=25, deadline=None)
    )
