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


class Churn(RuleBasedStateMachine):
    """All algorithms side by side: what comes and goes, and what must match, is thought of once for all."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.engines = {algorithm: Engine(algorithm) for algorithm in algorithms()}
        self.model = {}
        self.next_id = 0

    @rule(target=ids, expression=conditions())
    def subscribe(self, expression):
        self.next_id += 1
        for engine in self.engines.values():
            engine.subscribe(self.next_id, expression)
        self.model[self.next_id] = expression
        return self.next_id

    @rule(target=ids, several=st.lists(conditions(), min_size=1, max_size=6))
    def subscribe_many(self, several):
        rows = {self.next_id + 1 + at: expression for at, expression in enumerate(several)}
        self.next_id += len(several)
        for engine in self.engines.values():
            engine.subscribe_many(rows.items())
        self.model |= rows
        return multiple(*rows)

    @rule(id=consumes(ids))
    def unsubscribe(self, id):
        for engine in self.engines.values():
            engine.unsubscribe(id)
        del self.model[id]

    @rule(id=ids, expression=conditions())
    def replace(self, id, expression):
        for engine in self.engines.values():
            engine.subscribe(id, expression, replace=True)
        self.model[id] = expression

    @rule(algorithm=st.sampled_from(list(algorithms())))
    def save_and_load(self, algorithm):
        with tempfile.TemporaryDirectory() as folder:
            self.engines[algorithm].save(Path(folder) / "engine")
            self.engines[algorithm] = Engine.load(Path(folder) / "engine")

    @rule(event=happenings())
    def match(self, event):
        expected = sorted(id for id, expression in self.model.items() if truth(expression, event) is True)
        for algorithm, engine in self.engines.items():
            assert sorted(engine.match(event)) == expected, algorithm

    @rule(several=st.lists(happenings(), max_size=5))
    def match_batch(self, several):
        expected = sorted(
            (row, id)
            for row, event in enumerate(several)
            for id, expression in self.model.items()
            if truth(expression, event) is True
        )
        for algorithm, engine in self.engines.items():
            table = engine.match_batch(several)
            assert sorted(zip(*table.to_pydict().values(), strict=True)) == expected, algorithm

    @invariant()
    def holds_what_the_model_holds(self):
        for algorithm, engine in self.engines.items():
            assert len(engine) == len(self.model), algorithm
            assert set(engine) == set(self.model), algorithm


def test_churn_never_confuses():
    run_state_machine_as_test(Churn, settings=settings(max_examples=30, stateful_step_count=25, deadline=None))
