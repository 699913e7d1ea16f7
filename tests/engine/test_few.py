"""A few subscriptions are taken in without a table, and it must not show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken import Engine, Schema, Subscription, parse
from harken.errors import HarkenError
from harken.intake import FEW, Admission, Few, checked, compiled
from harken.matching.identities import Identities, type_of
from harken.model.limits import DEFAULT_LIMITS, Limits
from harken.model.subscriptions import Validity
from tests.strategies import expressions

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
TIGHT = Limits(max_clauses=3, max_work=60, max_length=80)

ids = st.one_of(
    st.integers(0, 5), st.sampled_from(["a", "b", "", "é", True, None, 2**63, 1.5, np.int64(3), "\ud800"])
)
texts = st.one_of(
    expressions(max_leaves=4),
    st.sampled_from(
        ["x = 1", "x < 1 AND x > 2", "x =", "", "y = 'a' OR x = 2", None, 7, "z LIKE '%'", "x = 1 " * 20]
    ),
)
moments = st.sampled_from([None, NOON, NOON + timedelta(hours=1), NOON.replace(tzinfo=None), "noon", float("nan")])
mappings = st.fixed_dictionaries(
    {"id": ids, "expression": texts},
    optional={"owner": st.sampled_from([None, "Ann", "", 5]), "valid_from": moments, "valid_until": moments},
)
rows = st.one_of(st.tuples(ids, texts), mappings, st.tuples(ids), st.just(3))
held = st.one_of(st.lists(st.integers(0, 5), unique=True), st.lists(st.sampled_from(["a", "b"]), unique=True))


def told(admission: Admission) -> tuple[object, ...]:
    rejects = [(each.row, each.id, type(each.error), str(each.error)) for each in admission.rejects]
    own = admission.ids
    table = admission.incoming.compiled.to_pylist()
    expressions_told = list(admission.incoming.expressions)
    written = list(admission.texts())
    owners, validity = dict(admission.owners), dict(admission.validity)
    return (list(own) if isinstance(own, list) else own.to_pylist(), owners, validity, rejects, table, written), [
        str(each) for each in expressions_told
    ]


@given(
    st.lists(rows, max_size=6),
    held,
    st.booleans(),
    st.sampled_from([DEFAULT_LIMITS, TIGHT]),
    st.sampled_from([None, Schema({"x": "int", "y": "string"})]),
)
def test_a_few_are_admitted_as_many_are(several, registered, replace, limits, schema):
    identities = Identities()
    identities.admit(registered)
    few = checked(several, schema, limits)
    assert isinstance(few, Few)
    many = compiled(several, schema, limits)
    assert told(few.admitted(identities, replace=replace)) == told(many.admitted(identities, replace=replace))


@given(ids, texts, moments, moments, st.sampled_from([None, "Ann", 5]))
def test_one_is_taken_as_a_row_of_a_table_is(id, text, start, end, owner):
    row = {"id": id, "expression": text, "owner": owner, "valid_from": start, "valid_until": end}
    report = Engine("reference").subscribe_many([row], on_error="collect")
    errors = list[HarkenError]()
    try:
        Engine("reference").subscribe(id, text, owner=owner, valid_from=start, valid_until=end)
    except HarkenError as error:
        errors.append(error)
    assert [(type(each.error), str(each.error)) for each in report.rejects] == [
        (type(each), str(each)) for each in errors
    ]


@pytest.mark.parametrize("count", [FEW, FEW + 1])
def test_progress_is_told_of_few_as_of_many(count):
    done: list[int] = []
    Engine("reference").subscribe_many([(at, "x = 1") for at in range(count)], progress=done.append)
    assert done == [count]


def test_nobody_is_told_of_no_progress():
    done: list[int] = []
    Engine("reference").subscribe_many([], progress=done.append)
    assert done == []


@pytest.mark.kernel
@pytest.mark.parametrize("algorithm", ["dynamic", "rapid", "counting"])
@pytest.mark.parametrize("beside", [False, True])
def test_a_few_with_many_clauses_each_are_found(algorithm, beside):
    engine = Engine(algorithm)
    if beside:  # then what is large is entered in portions
        for _ in range(2):
            reader = Thread(target=engine.match, args=[{"x": 1}])
            reader.start()
            reader.join()
        engine.match({"x": 1})
        assert not engine._door.is_quiet()
    wide = " OR ".join(f"(x = {at} AND y = {at})" for at in range(200))
    engine.subscribe_many([(at, f"({wide}) AND z = {at}") for at in range(6)])
    assert engine.match({"x": 150, "y": 150, "z": 4}) == [4]
    engine.unsubscribe_many([4, 5])
    assert engine.match({"x": 150, "y": 150, "z": 4}) == []
    assert sorted(engine) == [0, 1, 2, 3]


def test_a_frame_that_can_be_read_once_is_read_once():
    class Once:
        """A stream, as an Arrow reader is one."""

        def __init__(self, table):
            self._table, self.asked = table, 0

        def __arrow_c_stream__(self, requested_schema=None):
            self.asked += 1
            return self._table.__arrow_c_stream__(requested_schema)

    once, engine = Once(pa.table({"id": [1, 2], "expression": ["x = 1", "x = 2"]})), Engine("reference")
    engine.subscribe_many(once)
    assert once.asked == 1
    assert engine.match({"x": 2}) == [2]


def test_owners_and_validity_of_a_few_are_kept():
    engine = Engine("reference")
    engine.subscribe_many(
        [
            {"id": "a", "expression": "x = 1", "owner": "Ann"},
            {"id": "b", "expression": "x = 1", "valid_until": NOON},
            Subscription("c", parse("x = 1"), "Carl", Validity(NOON)),
        ]
    )
    assert [engine.subscription(id).owner for id in "abc"] == ["Ann", None, "Carl"]
    assert engine.match({"x": 1}, at=NOON - timedelta(hours=1)) == ["a", "b"]
    assert sorted(engine.match({"x": 1}, at=NOON)) == ["a", "c"]


def test_lists_of_ids_have_types():
    assert [str(type_of(each)) for each in ([], ["a"], [1])] == ["string", "string", "int64"]
