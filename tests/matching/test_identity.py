"""Ids and slots: whatever is admitted and dismissed, a dictionary would know the same."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harken.errors import DuplicateSubscriptionError, UnknownSubscriptionError
from harken.matching.identities import Identities
from harken.matching.kernels import identifying

pytestmark = pytest.mark.kernel

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def integer_array(ids):
    return pa.array(ids, pa.int64())


def identities_of(ids, few=4):
    identities = Identities(few)
    identities.admit(pa.array(ids))
    return identities


# ---------------------------------------------------------------- against a dictionary

close_together = st.integers(-20, 20)
far_apart = st.builds(
    lambda factor, shift: factor << shift, st.integers(-8, 7), st.sampled_from([16, 31, 32, 48, 60])
)
anywhere = st.integers(LOWEST, HIGHEST)
integers = st.one_of(close_together, far_apart, anywhere, st.sampled_from([LOWEST, HIGHEST, 0, -1]))
strings = st.one_of(st.sampled_from([str(number) for number in range(20)]), st.text(min_size=1, max_size=3))
batches = st.one_of(st.lists(integers, min_size=1, max_size=6), st.lists(strings, min_size=1, max_size=6))


class IdentitiesAgainstDictionary(RuleBasedStateMachine):
    """The model maps ids to the slots that they were given."""

    def __init__(self):
        super().__init__()
        self.identities = Identities(few=4)
        self.model = {}

    def _fits(self, ids):
        return not self.model or type(ids[0]) is type(next(iter(self.model)))

    def _admit(self, ids):
        slots = self.identities.admit(pa.array(ids)).tolist()
        assert not set(slots) & set(self.model.values())
        self.model |= zip(ids, slots, strict=True)

    @rule(ids=batches)
    def admit(self, ids):
        assert self.identities.accepts(pa.array(ids).type) is self._fits(ids)
        if not self._fits(ids):
            return
        if len(set(ids)) < len(ids) or set(ids) & set(self.model):
            with pytest.raises(DuplicateSubscriptionError):
                self.identities.admit(pa.array(ids))
        else:
            self._admit(ids)

    @rule(start=st.integers(-(2**20), 2**20), shift=st.sampled_from([0, 1, 20, 32, 40]), count=st.integers(5, 60))
    def admit_a_series(self, start, shift, count):
        series = [number << shift for number in range(start, start + count)]
        series = [id for id in series if id not in self.model]
        if series and self._fits(series):
            self._admit(series)

    @rule(ids=batches, data=st.data())
    def dismiss(self, ids, data):
        known = data.draw(st.lists(st.sampled_from(sorted(self.model)), max_size=10)) if self.model else []
        unknown = [id for id in ids if id not in self.model]
        if unknown:
            with pytest.raises(UnknownSubscriptionError) as caught:
                self.identities.dismiss([*known, *ids])
            assert caught.value.subscription == unknown[0]
        slots = self.identities.dismiss(known).tolist()
        assert sorted(slots) == sorted({self.model.pop(id) for id in set(known)})

    @rule(keep=st.integers(0, 9))
    def dismiss_most(self, keep):
        going = sorted(self.model)[keep:]
        self.identities.dismiss(pa.array(going) if going else [])
        self.model = {id: slot for id, slot in self.model.items() if id not in set(going)}

    @rule(ids=batches)
    def look_up(self, ids):
        assert self.identities.slots_of(pa.array(ids)).tolist() == [self.model.get(id, -1) for id in ids]
        assert [id in self.identities for id in ids] == [id in self.model for id in ids]

    @invariant()
    def both_say_the_same(self):
        ids, slots = list(self.model), np.array(list(self.model.values()), np.int64)
        assert len(self.identities) == len(ids)
        assert sorted(self.identities) == sorted(ids)
        assert self.identities.ids(slots) == ids
        array = self.identities.id_array(slots)
        assert array.to_pylist() == ids
        assert array.type == self.identities.arrow_type == (pa.array(ids).type if ids else pa.string())
        assert self.identities.slots_of(array).tolist() == slots.tolist()
        assert all(self.identities.slot(id) == self.model[id] for id in ids[:3])
        assert self.identities.nbytes > 0


TestIdentitiesAgainstDictionary = IdentitiesAgainstDictionary.TestCase
TestIdentitiesAgainstDictionary.settings = settings(max_examples=50, stateful_step_count=25)


# ---------------------------------------------------------------- what is an id

NO_IDS = [True, False, 1.0, np.float32(1), np.True_, Decimal(1), 1j, None, b"1", [1], 2**64 + 1, "1"]


@pytest.mark.parametrize("few", [4, 100], ids=["flat", "plain"])
@pytest.mark.parametrize("other", NO_IDS, ids=repr)
def test_what_python_holds_equal_to_an_integer_is_not_that_id(other, few):
    identities = identities_of(range(10), few)
    assert other not in identities
    with pytest.raises(UnknownSubscriptionError):
        identities.slot(other)
    for ids in ([other], [1, other], [*range(10), other]):
        with pytest.raises(UnknownSubscriptionError):
            identities.dismiss(ids)
    assert len(identities) == 10


@pytest.mark.parametrize("few", [4, 100], ids=["flat", "plain"])
def test_an_integer_of_numpy_is_the_id_that_it_equals(few):
    identities = identities_of([5, -5, *range(10, 20)], few)
    assert np.int8(-5) in identities
    assert np.uint64(2**64 - 5) not in identities
    assert identities.slot(np.uint16(5)) == identities.slot(5)
    identities.dismiss([np.int64(5), 5])
    assert len(identities) == 11


COLUMNS = {
    "int16": pa.array([3, 1, 3], pa.int16()),
    "uint64": pa.array([3, 1, 3], pa.uint64()),
    "chunks": pa.chunked_array([[3], [1, 3]]),
    "dictionary": pa.array([3, 1, 3]).dictionary_encode(),
    "slice": pa.array([0, 3, 1, 3, 0])[1:4],
    "numpy": np.array([3, 1, 3], np.uint8),
    "numpy, backwards": np.array([3, 1, 1])[::-1],
    "numpy of objects": np.array([3, 1, 3], object),
    "range": range(1, 4, 2),
    "generator": (id for id in (3, 1, 3)),
}


@pytest.mark.parametrize("few", [4, 100], ids=["flat", "plain"])
@pytest.mark.parametrize("name", COLUMNS)
def test_integers_may_come_in_any_column(name, few):
    identities = identities_of(range(10), few)
    column = (id for id in (3, 1, 3)) if name == "generator" else COLUMNS[name]
    slots = identities.dismiss(column)
    assert len(slots) == 2
    assert sorted(identities) == [0, 2, *range(4, 10)]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_strings_may_come_in_any_column(kind):
    identities = identities_of(["a", "b", "c"])
    identities.dismiss(pa.array(["b", "a", "b"]).cast(kind))
    assert list(identities) == ["c"]
    with pytest.raises(UnknownSubscriptionError):
        identities.dismiss(pa.array(["c", "d"]).cast(kind))
    identities.dismiss(np.array(["c"]))
    assert len(identities) == 0


NO_COLUMNS = [
    pa.array([1, None]),
    pa.array([1.0]),
    pa.array([True]),
    pa.array(["1"]),
    pa.array([None]),
    pa.array([2**63 + 1], pa.uint64()),
    pa.array([Decimal(1)]),
    np.array([1.0]),
    np.array([True]),
    np.array([[1]]),
    np.array([2**64 - 1], np.uint64),
    np.array([1, True], object),
    [1, 2**63] * 5,
    ["\ud800"] * 9,
]


@pytest.mark.parametrize("few", [4, 100], ids=["flat", "plain"])
@pytest.mark.parametrize("column", NO_COLUMNS, ids=lambda column: f"{type(column).__name__}-{len(column)}")
def test_a_column_that_holds_something_else_dismisses_nothing(column, few):
    identities = identities_of([-1, 1, *range(10, 20)], few)
    with pytest.raises(UnknownSubscriptionError):
        identities.dismiss(column)
    assert len(identities) == 12


# ---------------------------------------------------------------- slots


def test_slots_are_used_again_before_new_ones():
    identities = identities_of(range(20))
    free = set(identities.dismiss(range(5, 15)).tolist())
    first = set(identities.admit(integer_array(range(100, 107))).tolist())
    second = set(identities.admit(integer_array(range(200, 205))).tolist())
    assert first < free
    assert second == free - first | {20, 21}


def test_what_was_plain_and_thinned_out_becomes_flat_under_the_same_slots():
    identities = Identities(few=100)
    slots = dict(enumerate(identities.admit(integer_array(range(100))).tolist()))
    identities.dismiss(range(97))
    identities.admit(integer_array(range(1_000, 1_200)))
    assert [identities.slot(id) for id in (97, 98, 99)] == [slots[id] for id in (97, 98, 99)]
    assert sorted(identities) == [97, 98, 99, *range(1_000, 1_200)]


def test_all_ids_can_be_dismissed_while_they_are_listed():
    identities = identities_of(range(3_000))
    for id in identities:
        identities.dismiss([id])
    assert len(identities) == 0


def test_emptied_identities_take_no_more_room_than_new_ones():
    identities = identities_of(range(2_000))
    identities.dismiss(range(2_000))
    assert identities.nbytes == Identities().nbytes
    identities.admit(pa.array(["a"]))
    assert identities.ids(identities.slots_of(pa.array(["a"]))) == ["a"]


def test_a_failed_admission_settles_no_type():
    identities = Identities(few=4)
    with pytest.raises(DuplicateSubscriptionError, match="subscription 1 is"):
        identities.admit(integer_array([0, 1, 2, 3, 4, 1]))
    assert identities.arrow_type == pa.string()
    identities.admit(pa.array(["a"]))
    assert list(identities) == ["a"]


def test_admitting_nothing_settles_no_type():
    identities = Identities()
    assert identities.admit(integer_array([])).tolist() == []
    assert identities.arrow_type == pa.string()


@pytest.mark.parametrize("portion", [1, 97, 5_000])
def test_many_integers_take_at_most_16_bytes_each(portion):
    identities = Identities(few=4)
    for start in range(0, 5_000, portion):
        identities.admit(integer_array(range(start, min(start + portion, 5_000))))
        if len(identities) > 500:
            assert identities.nbytes <= 16 * len(identities) + 100


@given(st.integers(0, 52), st.integers(0, 2**64 - 1))
@settings(max_examples=30)
def test_ids_that_differ_in_few_bits_want_different_places(shift, seed):
    hashes = [identifying.hash_of(np.uint64(number << shift), np.uint64(seed)) for number in range(300)]
    homes = {int(identifying.home_of(np.uint64(hashed), 600)) for hashed in hashes}
    assert all(0 <= home < 600 for home in homes)
    assert len(homes) > 190  # 236 of 600 are to be expected


# ---------------------------------------------------------------- without kernels


@pytest.mark.parametrize("ids", ["range(100)", "map(str, range(5_000))"])
def test_few_integers_and_any_strings_need_no_kernels(ids):
    code = (
        "import sys, pyarrow as pa\n"
        "from harken.matching.identities import Identities\n"
        "identities = Identities()\n"
        f"ids = list({ids})\n"
        "identities.admit(pa.array(ids))\n"
        "assert list(identities) == ids and ids[7] in identities\n"
        "identities.dismiss(pa.array(ids))\n"
        "assert len(identities) == 0\n"
        "print('numba' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]
