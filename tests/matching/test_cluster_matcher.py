"""What the cluster algorithms share, seen from inside."""

from __future__ import annotations

import pytest

from harken import Engine

pytestmark = pytest.mark.kernel


def test_a_new_dimension_is_estimated_even_if_its_predicate_has_the_number_of_another():
    engine = Engine("propagation")
    engine.subscribe(1, "a MATCHES 'x'")
    engine.subscribe(1, "b != 2", replace=True)
    matcher = engine._matcher
    assert len(matcher._predicates) == 1
    assert len(matcher._estimated().presence) == len(matcher._predicates.dimensions) == 2
    assert engine.match({"b": 3}) == [1]
