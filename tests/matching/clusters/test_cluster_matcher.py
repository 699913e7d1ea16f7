"""What the cluster algorithms share, seen from inside."""

from __future__ import annotations

import pytest

from harken import Engine
from harken.matching.encoding.workspace import SURVIVORS

pytestmark = pytest.mark.kernel


def test_a_new_dimension_is_estimated_even_if_its_predicate_has_the_number_of_another():
    engine = Engine("propagation")
    engine.subscribe(0, "a MATCHES 'y'")  # so that the dimension stays
    engine.subscribe(1, "a MATCHES 'x'")
    engine.unsubscribe(1)
    engine.subscribe(1, "b != 2")
    matcher = engine._matcher
    assert len(matcher._predicates) == 2
    assert len(matcher._estimated().presence) == len(matcher._predicates.dimensions) == 2
    assert engine.match({"b": 3}) == [1]


@pytest.mark.parametrize("prefetch", [True, False])
def test_a_cluster_longer_than_the_room_for_its_survivors_is_looked_at_whole(prefetch):
    engine = Engine("propagation", prefetch=prefetch)
    count = 2 * SURVIVORS + 100
    engine.subscribe_many((id, f"x = 1 AND y != {id % 7} AND z != {id}") for id in range(count))
    expected = [id for id in range(count) if id % 7 != 3 and id != 5_000]
    assert sorted(engine.match({"x": 1, "y": 3, "z": 5_000})) == expected
    assert engine.match({"x": 2, "y": 3, "z": 5_000}) == []


def test_all_chances_are_estimated_again_the_more_seldom_the_more_clauses_there_are(monkeypatch):
    engine, estimates = Engine("propagation"), []
    estimate = engine._matcher._estimate_anew
    monkeypatch.setattr(engine._matcher, "_estimate_anew", lambda: (estimates.append(1), estimate()))
    for id in range(40):  # each with an eighth of a thousand or more
        engine.subscribe(id, " OR ".join(f"(a = {id} AND b = {at})" for at in range(150)))
    assert 3 < len(estimates) < 20
