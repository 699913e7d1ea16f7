"""What was written is what people are shown, whatever an index makes of it; and what that costs."""

from __future__ import annotations

import random
from copy import deepcopy

import numpy as np
import pytest

from harken import Engine, Limits, algorithms, attr, parse
from harken.bench.damage import contents, seal
from harken.compiler import Texts, compile_texts
from harken.language import to_text
from harken.written import BLOCK, MOST_CHARACTERS, Written
from tests.strategies import Generator

pytestmark = pytest.mark.kernel
every_algorithm = pytest.mark.parametrize("algorithm", algorithms())

CONTRADICTION = "price < 100 AND price > 200"


def shown(engine, id):
    return to_text(engine.subscription(id).expression)


@every_algorithm
def test_what_was_written_is_given_back_and_explained(algorithm, tmp_path):
    engine = Engine(algorithm)
    engine.subscribe("a", "price<100 AND price>200")
    engine.subscribe("b", "NOT (x = 1 OR y > 2)")
    engine.save(tmp_path / "engine")
    for each in (engine, Engine.load(tmp_path / "engine"), Engine.load(tmp_path / "engine", algorithm="dynamic")):
        assert shown(each, "a") == CONTRADICTION
        assert shown(each, "b") == "NOT (x = 1 OR y > 2)"
        said = str(each.explain({"price": 150}, "a"))
        assert "price < 100   [price is 150]" in said
        assert "contradicts itself" in said


def test_a_switch_to_an_index_changes_no_words(tmp_path):
    engine = Engine(small=3)
    engine.subscribe_many([(at, f"NOT (x <= {at})") for at in range(3)])
    engine.subscribe(3, CONTRADICTION)
    assert engine.algorithm == "dynamic"
    assert [shown(engine, at) for at in range(4)] == ["NOT x <= 0", "NOT x <= 1", "NOT x <= 2", CONTRADICTION]
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    loaded.subscribe(0, "NOT (y = 1)", replace=True)
    loaded.unsubscribe(1)
    loaded.subscribe(9, "NOT (z = 1)")
    assert [shown(loaded, at) for at in (0, 2, 3, 9)] == ["NOT y = 1", "NOT x <= 2", CONTRADICTION, "NOT z = 1"]


def test_trees_are_given_back_as_they_were(tmp_path):
    generator = Generator("written")
    trees = [generator.expression() for _ in range(60)] + [attr("x").is_in(range(5_000))]
    engine = Engine("dynamic", limits=Limits(max_length=400))
    engine.subscribe_many(enumerate(trees))
    engine.save(tmp_path / "engine")
    for each in (engine, Engine.load(tmp_path / "engine")):
        assert [each.subscription(at).expression for at in range(len(trees))] == trees


def test_without_texts_the_normal_form_is_given_and_that_is_remembered(tmp_path):
    engine = Engine("dynamic", keep_text=False)
    engine.subscribe("a", CONTRADICTION)
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    loaded.subscribe("b", CONTRADICTION)
    assert [shown(engine, "a"), shown(loaded, "a"), shown(loaded, "b")] == ["FALSE"] * 3
    assert "texts" not in loaded.stats()["bytes"]


def test_what_came_compiled_is_given_in_its_normal_form_beside_texts(tmp_path):
    engine = Engine("propagation")
    engine.subscribe_many(compile_texts(Texts([1, 2], [CONTRADICTION, "NOT (x = 1 OR y > 2)"])).table)
    engine.subscribe(3, CONTRADICTION)
    engine.subscribe(2, CONTRADICTION, replace=True)
    engine.save(tmp_path / "engine")
    for each in (engine, Engine.load(tmp_path / "engine")):
        assert [shown(each, at) for at in (1, 2, 3)] == ["FALSE", CONTRADICTION, CONTRADICTION]


def test_rejected_rows_do_not_shift_the_texts_of_others():
    engine = Engine("propagation")
    report = engine.subscribe_many([(1, "x = 1"), (2, "x <"), (3, "x = 3"), (3, "x = 4")], on_error="collect")
    assert report.loaded == 2
    assert [shown(engine, at) for at in (1, 3)] == ["x = 1", "x = 3"]


def test_texts_of_many_thousands_come_back_after_any_use(tmp_path):
    chance, engine, texts = random.Random(3), Engine("propagation"), {}
    for turn in range(6):
        fresh = {
            turn * 10_000 + at: f"NOT (x <= {chance.randrange(50)} OR y = '{'é' * (at % 5)}')"
            for at in range(2_500)
        }
        engine.subscribe_many(fresh.items())
        texts |= fresh
        leaving = chance.sample(sorted(texts), 2_000)
        engine.unsubscribe_many(leaving)
        for id in leaving:
            del texts[id]
        if turn == 3:
            engine.save(tmp_path / "engine")
            engine = Engine.load(tmp_path / "engine")
    for id in chance.sample(sorted(texts), 300):
        assert engine.subscription(id).expression == parse(texts[id])


# ---------------------------------------------------------------- the texts alone


def held(written, slots):
    return [written.text(slot) for slot in slots]


def test_texts_are_packed_and_take_less_than_they_are_long():
    texts = [f"a{at % 30:02d} = {at % 35} AND b = {at % 7} AND c < {at}" for at in range(10 * BLOCK)]
    written = Written()
    written.admit(np.arange(len(texts)), texts)
    assert held(written, range(0, len(texts), 777)) == texts[::777]
    assert written.nbytes < sum(map(len, texts)) / 2


def test_room_of_texts_that_went_is_used_again():
    written, slots = Written(), np.arange(8 * BLOCK)
    largest = 0
    for turn in range(12):
        written.admit(slots, [f"x = {turn} AND y = {slot}" for slot in slots])
        largest = max(largest, written.nbytes)
        if turn == 1:
            bound = 2 * largest
        assert held(written, (0, 5, len(slots) - 1)) == [
            f"x = {turn} AND y = {at}" for at in (0, 5, len(slots) - 1)
        ]
        written.forget(slots)
        assert len(written) == 0
    assert largest < bound


def test_some_that_stay_survive_the_packing_of_others():
    written, slots = Written(), np.arange(10 * BLOCK)
    written.admit(slots, [f"x = {slot}" for slot in slots])
    written.forget(np.delete(slots, slice(0, None, 97)))
    assert held(written, slots[::97]) == [f"x = {slot}" for slot in slots[::97]]
    assert written.text(1) is None
    assert written.nbytes < 100_000
    written.forget(slots[:98:97])
    assert written.text(0) is None
    assert written.text(194) == "x = 194"


CHANCE = random.Random(1)


def noise(size):
    """A text that can hardly be packed."""
    return CHANCE.randbytes(size // 2).hex()


def test_long_texts_that_are_replaced_take_no_room():
    written, slot = Written(), np.array([0])
    written.admit(slot, ["x < 1"])
    for _ in range(50):
        written.forget(slot)
        written.admit(slot, [last := noise(200_000)])
        assert written.nbytes < 3 * MOST_CHARACTERS
    assert written.text(0) == last


def test_long_texts_that_are_replaced_beside_short_ones_that_stay_take_little_room():
    written, slot = Written(), np.array([0])
    for at in range(1, 60):
        written.admit(np.array([at]), [f"x = {at}"])
        written.admit(slot, [noise(200_000)])
        written.forget(slot)
        assert written.nbytes < 10 * MOST_CHARACTERS
    assert held(written, range(1, 60)) == [f"x = {at}" for at in range(1, 60)]
    assert written.text(0) is None


def test_texts_whose_block_went_are_saved_and_loaded_without_it():
    written, slots = Written(), np.arange(3 * BLOCK)
    written.admit(slots, [f"x = {slot}" for slot in slots])
    written.forget(slots[BLOCK : 2 * BLOCK])
    loaded = Written()
    loaded.restore(deepcopy(written.state()), np.delete(slots, slice(BLOCK, 2 * BLOCK)))
    for each in (written, loaded):
        assert held(each, (0, BLOCK, 2 * BLOCK)) == ["x = 0", None, f"x = {2 * BLOCK}"]
        each.forget(slots[:BLOCK])
        each.admit(slots[:1], ["y = 1"])
        assert held(each, (0, 1, 2 * BLOCK)) == ["y = 1", None, f"x = {2 * BLOCK}"]
        assert len(each) == BLOCK + 1


def test_long_texts_have_blocks_of_their_own(tmp_path):
    texts = [
        "a" * 10,
        "b" * (2 * MOST_CHARACTERS),
        "é" * MOST_CHARACTERS,
        "c",
        "d" * (5 * MOST_CHARACTERS),
        "\udc80",
    ]
    written = Written()
    written.admit(np.arange(len(texts)), texts)
    assert held(written, range(len(texts))) == texts
    again = Written()
    again.restore(written.state(), np.arange(len(texts)))
    assert held(again, range(len(texts))) == texts
    again.admit(np.array([99]), ["e"])
    assert again.text(99) == "e"


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        *(("numbers", 0, 2), ("numbers", 0, 10**6), ("counts", 0, 5_000), ("counts", 0, -1)),
        *(("ends", 0, 10**6), ("sizes", 0, 10**12), ("sizes", 0, -1)),
    ],
)
def test_texts_that_are_not_where_they_are_said_to_be_are_refused(name, at, value):
    written = Written()
    written.admit(np.arange(3_000), [f"x = {slot}" for slot in range(3_000)])
    state = written.state()
    array = state.arrays[name].copy()
    array[at] = value
    with pytest.raises(ValueError, match="text"):
        Written().restore(type(state)({}, {**state.arrays, name: array}), np.arange(3_000))


def test_texts_of_slots_that_nobody_has_are_refused():
    written = Written()
    written.admit(np.arange(3), ["x", "y", "z"])
    with pytest.raises(ValueError, match="there is not"):
        Written().restore(written.state(), np.array([0, 2]))


def test_packed_texts_that_somebody_made_up_are_as_if_there_were_none(tmp_path):
    engine = Engine("propagation")
    engine.subscribe_many((at, f"NOT (x <= {at})") for at in range(3_000))
    engine.save(tmp_path / "engine")
    path = contents(tmp_path / "engine") / "written.packed.npy"
    content = bytearray(path.read_bytes())
    content[200:] = bytes(len(content) - 200)
    path.write_bytes(content)
    seal(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert shown(loaded, 5) == "x > 5"
    loaded.unsubscribe_many(range(2_990))
    assert sorted(loaded.match({"x": 2_995})) == list(range(2_990, 2_995))


def test_made_up_texts_do_not_get_into_a_table_of_texts(tmp_path):
    engine = Engine("propagation")
    engine.subscribe_many((at, f"NOT (x <= {at})") for at in range(10))
    engine.save(tmp_path / "engine")
    path = contents(tmp_path / "engine") / "written.counts.npy"
    np.save(path, np.load(path) - 1)
    numbers = contents(tmp_path / "engine") / "written.numbers.npy"
    np.save(numbers, np.where(np.arange(10) < 9, np.load(numbers), 0).astype(np.uint32))
    seal(tmp_path / "engine")
    Engine.load(tmp_path / "engine", algorithm="reference").save(tmp_path / "again")
    again = Engine.load(tmp_path / "again")
    assert again.algorithm == "reference"
    assert sorted(again.match({"x": 5})) == list(range(5))


def test_texts_that_come_and_go_in_turn_take_no_more_numbers_than_they_need():
    written = Written()
    for start in range(0, 400 * BLOCK, BLOCK):
        slots = np.arange(start % (2 * BLOCK), start % (2 * BLOCK) + BLOCK)
        written.admit(slots, [f"n = {start + each}" for each in range(BLOCK)])
        if start:
            gone = np.arange((start - BLOCK) % (2 * BLOCK), (start - BLOCK) % (2 * BLOCK) + BLOCK)
            written.forget(gone)
    assert len(written) == BLOCK
    assert len(written._blocks) < 200
    assert int(written._numbers.values.max()) < 200 * BLOCK
    assert written.text(int(slots[5])) == f"n = {start + 5}"
