"""Statistics of events: counts against exact ones, the sketch's promise, a fair sample, and what they are for."""

from __future__ import annotations

import math
import pickle
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken import Engine
from harken.errors import EventError, IndexFormatError
from harken.spark.statistics.dependence import dependence
from harken.spark.statistics.event_statistics import EventStatistics, event_statistics
from harken.spark.statistics.sketches import Sample, Sampler, Sketch, Summary, Survey, comparable, summarise

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
FORM = (
    "tiny tinyint, number bigint, half float, real double, text string, flag boolean, day date, moment timestamp, "
    "local timestamp_ntz, price decimal(10,2), place struct<city:string,at:struct<zone:int>>, "
    "point array<double>, absent int, nothing void, raw binary, `odd.name` int"
)


def mixed_event(number):
    """An event with something of everything; a third of the attributes are missing."""
    chance = random.Random(number)
    values = (
        chance.randint(-3, 3),
        chance.choice([2**53 + 1, 2**53, -5]),
        chance.choice([0.1, 0.5]),
        chance.choice([0.0, -0.0, 1.5, math.inf, math.nan]),
        chance.choice(["camera", "", "ключ", "tripod"]),
        chance.random() < 0.3,
        date(2024, 1, 1) + timedelta(chance.randint(0, 3)),
        NOON + timedelta(microseconds=chance.randint(0, 3)),
        datetime(2024, 5, 1, chance.randint(0, 3)),
        Decimal(chance.randint(0, 4)) / 4,
        (chance.choice(["Oslo", None]), (chance.randint(1, 2),)),
        [0.0, 1.0],
        None,
        None,
        b"raw",
        number,
    )
    return tuple(None if chance.random() < 1 / 3 else value for value in values)


EVENTS = [mixed_event(number) for number in range(600)]


def expected_columns():
    """By attribute, the values of all events as the statistics should have them."""
    columns = dict(
        zip([part.split()[0].strip("`") for part in FORM.split(", ")], zip(*EVENTS, strict=True), strict=True)
    )
    places = columns.pop("place")
    columns["place.city"] = [place and place[0] for place in places]
    columns["place.at.zone"] = [place and place[1][0] for place in places]
    columns["half"] = [None if value is None else float(np.float32(value)) for value in columns["half"]]
    columns["local"] = [value and value.replace(tzinfo=UTC) for value in columns["local"]]
    del columns["raw"]
    return columns


@pytest.fixture(scope="module")
def mixed(spark):
    """Statistics of the mixed events, of which one partition has most and some have none."""
    parts = [EVENTS[:3], [], EVENTS[3:500], EVENTS[500:]]
    frames = [spark.createDataFrame(part, FORM).coalesce(1) for part in parts]
    whole = frames[0].union(frames[1]).union(frames[2]).union(frames[3])
    return event_statistics(whole, sample=200, seed=3)


def test_presence_and_counts_are_exact_while_the_values_are_few(mixed):
    expected = expected_columns()
    assert mixed.events == len(EVENTS)
    assert set(mixed.attributes) == set(expected)
    for name, values in expected.items():
        known = mixed.attributes[name]
        there = [value for value in values if value is not None]
        assert known.present == len(there), name
        assert mixed.presence(name) == len(there) / len(EVENTS)
        if name == "point":
            assert not known.counts
            continue
        assert known.counts == Counter(value for value in there if value == value), name
        assert known.undercount == 0
        assert all(mixed.frequency(name, value) == count / 600 for value, count in known.counts.items())


def test_values_are_keyed_as_python_has_them(mixed):
    assert {type(value) for known in mixed.attributes.values() for value in known.counts} == {
        int, float, str, bool, date, datetime, Decimal,
    }  # fmt: skip
    assert all(
        moment.utcoffset() == timedelta(0) for name in ("moment", "local") for moment in counts(mixed, name)
    )
    assert list(counts(mixed, "text").values()) == sorted(counts(mixed, "text").values(), reverse=True)


def counts(statistics, name):
    return statistics.attributes[name].counts


def test_a_value_may_be_asked_for_in_any_form_that_compares_equal(mixed):
    assert mixed.frequency("tiny", 1.0) == mixed.frequency("tiny", np.int8(1)) == counts(mixed, "tiny")[1] / 600
    assert (
        mixed.frequency("local", datetime(2024, 5, 1, 1))
        == counts(mixed, "local")[datetime(2024, 5, 1, 1, tzinfo=UTC)] / 600
    )
    assert mixed.frequency("text", "never") == 0.0


def test_the_sample_has_whole_events_and_no_values_that_matching_refuses(mixed):
    expected = expected_columns()
    assert mixed.sample.num_rows == 200
    assert set(mixed.sample.column_names) == set(expected) - {"point", "nothing"}
    rows = set(zip(*(map(plain, expected[name]) for name in mixed.sample.column_names), strict=True))
    for row in mixed.sample.to_pylist():
        assert tuple(row.values()) in rows
    engine = Engine()
    engine.subscribe(
        1, "real > 1 and text = 'camera' and day > DATE '2024-01-01' or point overlaps box(0, 0, 1, 1)"
    )
    engine.learn(mixed.sample)


def plain(value):
    return None if isinstance(value, float) and math.isnan(value) else value


def test_frequencies_are_those_of_integers_and_texts(mixed):
    found = mixed.frequencies()
    assert found["text"] == {value: count / 600 for value, count in counts(mixed, "text").items()}
    assert set(found["number"]) == {2**53 + 1, 2**53, -5}
    assert not any(found[name] for name in ("real", "flag", "day", "moment", "price", "point"))


def test_statistics_are_the_same_after_saving_and_loading(mixed, tmp_path):
    path = tmp_path / "new" / "statistics"
    mixed.save(path)
    mixed.save(path)
    loaded = EventStatistics.load(path)
    assert loaded == mixed
    assert [list(known.counts) for known in loaded.attributes.values()] == [
        list(known.counts) for known in mixed.attributes.values()
    ]
    assert {type(value) for known in loaded.attributes.values() for value in known.counts} >= {
        Decimal,
        bool,
        datetime,
    }
    assert pickle.loads(pickle.dumps(mixed)) == mixed
    assert [each.name for each in path.parent.iterdir()] == ["statistics"]


def test_a_damaged_file_is_not_loaded(mixed, tmp_path):
    path = tmp_path / "statistics"
    mixed.save(path)
    whole = path.read_bytes()
    chance = random.Random(1)
    damages = [
        b"",
        b"\n",
        b"{}\n",
        b"[" * 100_000,
        b"\xff\n",
        whole[:-1],
        whole[:40],
        whole.replace(b'"version": 1', b'"version": 9'),
    ]
    for _ in range(50):
        at = chance.randrange(len(whole))
        damages.append(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
    for damaged in damages:
        path.write_bytes(damaged)
        with pytest.raises(IndexFormatError, match="statistics"):
            EventStatistics.load(path)
    with pytest.raises(IndexFormatError, match="nowhere"):
        EventStatistics.load(tmp_path / "nowhere")


def test_the_sample_is_told_as_a_stream(mixed):
    assert pa.ipc.open_stream(pa.BufferReader(mixed.sample_bytes())).read_all() == mixed.sample


def test_statistics_print_as_a_short_table(mixed):
    lines = str(mixed).splitlines()
    assert lines[0] == "600 events, 16 attributes, a sample of 200"
    assert len(lines) == 2 + 16
    text = next(line for line in lines if line.startswith("text "))
    best, count = next(iter(counts(mixed, "text").items()))
    assert f"{mixed.presence('text'):.1%}" in text
    assert f"{best} {count / 600:.1%}" in text


def test_an_attribute_that_is_not_there_is_named_with_the_nearest_one(spark, mixed):
    events = spark.createDataFrame([], FORM)
    for ask in (
        lambda name: event_statistics(events, [name]),
        mixed.presence,
        lambda name: mixed.frequency(name, 1),
    ):
        with pytest.raises(EventError, match=r"no attribute 'place\.cty'; did you mean 'place\.city'") as caught:
            ask("place.cty")
        assert caught.value.attribute == "place.cty"
    with pytest.raises(EventError, match="'raw': binary is not a type of the language"):
        event_statistics(events, ["raw"])
    with pytest.raises(EventError, match="only the presence"):
        mixed.dependence("point", "text")
    for wrong in ({"values": 0}, {"sample": -1}, {"seed": -1}):
        with pytest.raises(ValueError, match="values is positive"):
            event_statistics(events, **wrong)


# ---------------------------------------------------------------- many events


def test_without_events_or_attributes_there_is_little_to_tell(spark, tmp_path):
    none = event_statistics(spark.createDataFrame([], FORM))
    assert none.events == 0
    assert none.sample.schema.field("price").type == pa.decimal128(10, 2)
    assert none.presence("text") == none.frequency("text", "camera") == none.dependence("text", "day") == 0.0
    assert "0 events" in str(none)
    bare = event_statistics(spark.range(0, 70, 1, 3), [])
    assert (bare.events, bare.attributes, bare.sample.num_columns) == (70, {}, 0)
    for statistics in (none, bare):
        statistics.save(tmp_path / "statistics")
        assert EventStatistics.load(tmp_path / "statistics") == statistics


def test_counts_of_a_large_domain_keep_their_promise(spark):
    partitions, rows, values = 7, 60_000, 100
    drawn = np.random.default_rng(5).zipf(1.3, rows) % 20_000
    truth = Counter(drawn.tolist())
    # Sorted, so that every partition sees other values.
    frame = spark.createDataFrame(pa.table({"value": np.sort(drawn)})).repartitionByRange(partitions, "value")
    statistics = event_statistics(frame, values=values, sample=0)
    known = statistics.attributes["value"]
    assert known.present == rows
    assert len(known.counts) <= values < len(truth)
    assert 0 < known.undercount <= (rows - sum(known.counts.values())) / (values + 1)
    assert all(count <= truth[value] for value, count in known.counts.items())
    assert all(often - known.counts.get(value, 0) <= known.undercount for value, often in truth.items())
    best, often = truth.most_common(1)[0]
    assert statistics.frequency("value", best) == pytest.approx(often / rows, rel=0.05)
    assert sum(statistics.frequencies()["value"].values()) <= 1.0
    assert " many  1 " in str(statistics)
    assert statistics.sample.num_rows == 0


def test_the_sample_is_fair_to_events_of_all_partitions_and_repeatable(spark):
    # Of 11 partitions one has most events; ten have a hundredth part each of the first's.
    frame = spark.range(0, 40_000, 1, 1).union(spark.range(40_000, 44_000, 1, 10))
    first, again, other = (event_statistics(frame, sample=5_000, seed=seed).sample for seed in (1, 1, 2))
    assert first == again
    assert first != other
    for sample in (first, other):
        ids = sample.column("id").to_numpy()
        assert len(np.unique(ids)) == len(ids) == 5_000
        of_small = np.count_nonzero(ids >= 40_000)
        assert abs(of_small - 5_000 / 11) < 6 * math.sqrt(5_000 / 11)
        quarters = np.bincount(ids // 11_000, minlength=4)
        assert np.abs(quarters - 1_250).max() < 6 * math.sqrt(1_250)


# ---------------------------------------------------------------- what they are good for


def test_an_engine_that_learns_from_the_sample_does_less_and_matches_the_same(spark):
    chance = random.Random(11)
    subscriptions = [
        (at, f"shop = {7 if at % 2 else at} and size = {chance.randint(1, 20)} and kind = {chance.randint(1, 4)}")
        for at in range(2_000)
    ]
    # What most subscriptions ask for nearly all events have; hardly one has a size that is asked for.
    draw = np.random.default_rng(1)
    shops = np.where(draw.random(8_000) < 0.97, 7, 8)
    asked = {"shop": shops, "size": draw.integers(1, 1_000, 8_000), "kind": draw.integers(1, 5, 8_000)}
    events = pa.table({**asked, "unasked": np.arange(8_000)})
    statistics = event_statistics(spark.createDataFrame(events), asked, sample=2_000)
    assert statistics.sample.column_names == list(asked)
    assert statistics.frequency("shop", 7) == np.count_nonzero(shops == 7) / 8_000

    reference, unlearned, learned = Engine("reference"), Engine("static"), Engine("static")
    for engine in (reference, unlearned, learned):
        engine.subscribe_many(subscriptions)
    few = events.slice(0, 400)
    expected = matches(reference, few)
    assert expected
    assert matches(learned, few.slice(0, 200)) == matches(reference, few.slice(0, 200))
    learned.learn(statistics.sample)
    for engine in (unlearned, learned):
        assert matches(engine, few) == expected
    assert learned.stats()["events"] == 600
    assert learned.stats()["tables"] != unlearned.stats()["tables"]
    assert learned.stats()["checks_per_event"] < unlearned.stats()["checks_per_event"]


def matches(engine, events):
    found = engine.match_batch(events)
    return sorted(zip(found.column("event").to_pylist(), found.column("subscription").to_pylist(), strict=True))


# ---------------------------------------------------------------- without Spark


@given(st.lists(st.lists(st.integers(0, 30)), max_size=8), st.integers(1, 12))
def test_however_sketches_are_joined_and_pruned_they_keep_their_promise(parts, limit):
    joined = Sketch.of(pa.array([], pa.int64()))
    for part in parts:
        joined = joined.joined(Sketch.of(pa.array(part, pa.int64())).pruned(limit)).pruned(limit)
    truth = Counter(value for part in parts for value in part)
    found = dict(zip(joined.values.to_pylist(), joined.counts.tolist(), strict=True))
    assert len(found) == len(joined.values) <= limit
    assert all(0 < count <= truth[value] for value, count in found.items())
    assert all(often - found.get(value, 0) <= joined.undercount for value, often in truth.items())
    assert joined.undercount * (limit + 1) <= truth.total() - sum(found.values())


@given(st.lists(st.integers(0, 40), max_size=6), st.integers(0, 25))
def test_a_sample_of_samples_is_the_sample_of_all(sizes, size):
    schema = pa.schema([("row", pa.int64())])
    samples, keys, first = [Sample(np.zeros(0), schema.empty_table())], {}, 0
    for part, rows in enumerate(sizes):
        sampler = Sampler(schema, size, [part])
        for half in (rows // 2, rows - rows // 2):
            sampler.add(pa.RecordBatch.from_arrays([np.arange(first, first + half)], schema=schema))
            first += half
        everything = np.random.default_rng([part]).random(rows)
        keys |= dict(zip(everything.tolist(), range(first - rows, first), strict=True))
        samples.append(sampler.sample())
    drawn = Sample.joined(samples, size)
    assert drawn.rows.column("row").to_pylist() == [keys[key] for key in sorted(keys)[:size]]


def test_summaries_are_the_same_after_travelling():
    table = pa.table({"a": [1, 2, 2, None], "b": ["x", None, "ÿ", "x"]})
    batch = pa.RecordBatch.from_arrays(
        [*table.combine_chunks().to_batches()[0].columns, pa.array([True, False, False, True])], ["0", "1", "2"]
    )
    summary = summarise([batch, batch], Survey(table.schema, ("shape",), 10, 3, 0), 5)
    assert summary.present == {"a": 6, "b": 6, "shape": 4}
    travelled = Summary.from_bytes(summary.to_bytes())
    assert EventStatistics.of(travelled) == EventStatistics.of(summary)
    assert travelled.sample.keys.tolist() == sorted(summary.sample.keys.tolist())


def test_values_that_no_event_may_have_become_null():
    broken = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xff\xfe")
    )
    assert comparable(broken, pa.string()).to_pylist() == ["a", None]
    assert comparable(pa.array([10**7, 0], pa.int32()).cast(pa.date32()), pa.date32()).to_pylist() == [
        None,
        date(1970, 1, 1),
    ]
    late = pa.array([2**62, -(2**62), 0]).cast(pa.timestamp("us"))
    assert comparable(late, pa.timestamp("us", "UTC")).to_pylist() == [
        None,
        None,
        datetime(1970, 1, 1, tzinfo=UTC),
    ]
    assert str(comparable(pa.array([math.nan, -0.0, None]), pa.float64()).to_pylist()) == "[None, 0.0, None]"


def test_dependence_is_none_for_chance_and_full_for_what_determines():
    chance = np.random.default_rng(9)
    few, keys, reals = chance.integers(0, 8, 5_000), chance.integers(0, 2_000, 5_000), chance.random(5_000)
    other = chance.integers(0, 8, 5_000)
    assert of(few, other) < 0.05
    assert of(keys, chance.integers(0, 2_000, 5_000)) < 0.05
    assert of(reals, chance.random(5_000)) < 0.05
    assert of(few, (few + 3) % 8) == pytest.approx(1.0)
    assert of(reals, 2 * reals) == pytest.approx(1.0)
    assert 0.3 < of(few, np.where(chance.random(5_000) < 0.5, few, other)) < 0.7
    missing = reals < 0.5
    assert of(few, few, missing) > 0.9
    assert of(few, other, missing) > 0.2


def of(first, second, missing=None):
    return dependence(*(pa.chunked_array([pa.array(values, mask=missing)]) for values in (first, second)))


@pytest.mark.parametrize(
    "make",
    [int, str, float, Decimal, lambda at: date.fromordinal(at + 1), lambda at: NOON + timedelta(hours=at)],
    ids=["int", "string", "float", "decimal", "date", "timestamp"],
)
def test_many_values_of_any_type_are_taken_together(make):
    values = [make(at % 200) for at in range(2_000)]
    assert of(values, values) == pytest.approx(1.0)
    assert of(values, list(np.arange(2_000) // 200)) == 0.0


def test_few_events_tell_of_no_dependence():
    for values in ([], [1], [1, 1], [None, None], [None, 1], list(range(50))):
        assert of(values, values) == 0.0
