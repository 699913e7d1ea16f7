"""Saving and loading: what comes back is what was there, and what is damaged says so."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine, Limits, Schema, algorithms, attr, persistence
from harken.bench.damage import contents, seal
from harken.compiler import Texts, compile_texts
from harken.errors import HarkenError, IndexFormatError, SchemaError, UnknownAlgorithmError
from harken.matching.untrusted import read_table
from harken.model.evaluation import truth
from tests.strategies import Generator, events, wide_expressions

NOON = datetime(2026, 11, 15, 12, 0, 0, 1, tzinfo=UTC)


def seen(engine):
    return {id: repr(engine.subscription(id)) for id in engine}


@pytest.fixture
def engine():
    engine = Engine("reference", schema={"x": "float", "name": "string"}, limits=Limits(max_clauses=7))
    engine.subscribe("a", "x < 5 AND name LIKE 'it''s_%'", owner="Ann", valid_from=NOON)
    engine.subscribe("b", "NOT (x BETWEEN 1 AND 2 OR name IS NULL)", valid_until=NOON + timedelta(days=1))
    engine.subscribe("c", "TRUE")
    return engine


@pytest.fixture
def saved(engine, tmp_path):
    engine.save(tmp_path / "engine")
    return tmp_path / "engine"


def test_a_loaded_engine_is_the_saved_one(engine, saved):
    loaded = Engine.load(saved)
    assert seen(loaded) == seen(engine)
    assert list(loaded) == list(engine)
    assert loaded.algorithm == "reference"
    assert loaded.schema == engine.schema == Schema({"x": "float", "name": "string"})
    assert loaded.limits == Limits(max_clauses=7)
    for at in (NOON - timedelta(hours=1), NOON, NOON + timedelta(days=1)):
        for event in ({"x": 0.5, "name": "it's x"}, {"x": 3, "name": "b"}, {}):
            assert loaded.match(event, at=at) == engine.match(event, at=at)


def test_schema_and_limits_still_hold_after_loading(saved):
    loaded = Engine.load(str(saved))
    with pytest.raises(SchemaError):
        loaded.subscribe("d", "name = 5")
    with pytest.raises(HarkenError, match="max_clauses allows 7"):
        loaded.subscribe("d", " AND ".join(f"(x < {at} OR name CONTAINS '{at}')" for at in range(5)))


def test_an_engine_without_schema_and_with_integer_ids_survives(tmp_path):
    engine = Engine()
    engine.subscribe(-5, "a.b = 1")
    engine.save(tmp_path / "deep" / "er")
    loaded = Engine.load(tmp_path / "deep" / "er")
    assert list(loaded) == [-5]
    assert loaded.schema is None


def test_an_empty_engine_survives(tmp_path):
    Engine().save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert len(loaded) == 0
    loaded.subscribe(1, "TRUE")


@given(st.lists(wide_expressions, max_size=4))
@settings(max_examples=25)
def test_any_expression_survives(tmp_path_factory, written):
    folder = tmp_path_factory.mktemp("saved") / "engine"
    engine = Engine("reference")
    engine.subscribe_many(enumerate(written))
    engine.save(folder)
    assert seen(Engine.load(folder)) == seen(engine)
    shutil.rmtree(folder.parent)


@pytest.mark.kernel
@pytest.mark.parametrize("algorithm", algorithms())
def test_any_algorithm_may_load_what_another_saved(algorithm, tmp_path):
    generator = Generator("saving")
    written = [generator.expression() for _ in range(40)]
    happened = [generator.event() for _ in range(20)]
    engine = Engine(algorithm)
    engine.subscribe_many(enumerate(written))
    engine.unsubscribe_many(range(0, 40, 3))
    engine.save(tmp_path / "engine")
    picked = {"auto": "reference"}  # for so few
    assert Engine.load(tmp_path / "engine").algorithm == picked.get(algorithm, algorithm)
    for other in algorithms():
        loaded = Engine.load(tmp_path / "engine", algorithm=other)
        assert loaded.algorithm == picked.get(other, other)
        for event in happened:
            wanted = [at for at, expression in enumerate(written) if at % 3 and truth(expression, event) is True]
            assert sorted(loaded.match(event)) == wanted


def test_what_was_loaded_in_compiled_form_survives(tmp_path):
    engine = Engine()
    texts = ["x IN (1, 2) OR y LIKE 'a_' AND x > 3", "NOT (x = 1 OR y CONTAINS 'b')", "p WITHIN BOX(0, 0, 1, 1)"]
    engine.subscribe_many(compile_texts(Texts(range(3), texts)).table)
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    for event in (
        {"x": 1},
        {"x": 4, "y": "ab"},
        {"x": 2, "y": "c"},
        {"p": {"type": "Point", "coordinates": [0, 1]}},
    ):
        assert sorted(loaded.match(event)) == sorted(engine.match(event))


def test_what_is_longer_as_text_than_a_text_may_be_survives(tmp_path):
    engine = Engine("reference", limits=Limits(max_length=50))
    engine.subscribe("long", attr("x").is_in(range(1_000)))
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert seen(loaded) == seen(engine)
    assert loaded.limits == engine.limits


@pytest.mark.kernel
@pytest.mark.parametrize("algorithm", algorithms())
def test_what_is_larger_in_its_normal_form_than_a_text_may_be_survives(algorithm, tmp_path):
    factors = " AND ".join(f"(a{at} = 1 OR b{at} = 1)" for at in range(6))
    text = f"{factors} AND s MATCHES '^a+' AND s MATCHES 'b+$'"
    engine = Engine(algorithm, limits=Limits(max_length=len(text), max_clauses=64, max_regexes=2))
    engine.subscribe("a", text)
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    event = {**{f"b{at}": 1 for at in range(6)}, "s": "ab"}
    assert loaded.match(event) == ["a"]
    assert loaded.match({**event, "s": "abc"}) == []
    assert loaded.limits == engine.limits


def test_what_is_deeper_when_read_back_than_it_may_be_written_survives(tmp_path):
    text = "x IN (1, 2) AND (y = 1 OR z LIKE 'a_c')"
    engine = Engine(limits=Limits(max_depth=2, max_clauses=2))
    engine.subscribe_many(compile_texts(Texts(["a"], [text])).table)
    engine.save(tmp_path / "engine")
    assert Engine.load(tmp_path / "engine").match({"x": 2, "z": "abc"}) == ["a"]


# ---------------------------------------------------------------- the folder


def test_saving_again_replaces_the_engine_as_a_whole(engine, saved):
    engine.unsubscribe_many(["a", "b"])
    engine.subscribe("d", "x = 9")
    before = contents(saved)
    (saved / "notes.txt").write_text("precious")
    engine.save(saved)
    assert sorted(Engine.load(saved)) == ["c", "d"]
    assert not before.exists()
    assert (saved / "notes.txt").read_text() == "precious"
    assert [path.name for path in saved.parent.iterdir()] == ["engine"]


def test_an_empty_folder_may_be_saved_into(engine, tmp_path):
    (tmp_path / "empty").mkdir()
    engine.save(tmp_path / "empty")
    assert len(Engine.load(tmp_path / "empty")) == 3


def test_a_folder_of_other_things_is_left_alone(engine, tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"precious")
    with pytest.raises(IndexFormatError, match="is not a saved engine; choose another place"):
        engine.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


MANIFESTS_OF_OTHERS = ('{"name": "my web app"}', '{"format": "other"}', "[1]", "not json", "")


@pytest.mark.parametrize("manifest", MANIFESTS_OF_OTHERS)
def test_a_folder_with_a_manifest_of_others_is_left_alone(manifest, engine, tmp_path):
    (tmp_path / "manifest.json").write_text(manifest)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(IndexFormatError, match="is not a saved engine; choose another place"):
        engine.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "thesis"]
    assert (tmp_path / "manifest.json").read_text() == manifest
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


def test_a_manifest_that_is_a_pipe_is_not_waited_for(engine, tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(IndexFormatError, match="choose another place"):
        engine.save(tmp_path)


FILES = {"facts.json": {}, "manifest.json": {}, "../engine/thesis.tex": {}, "thesis.tex": {}}


@pytest.mark.parametrize("version", [1, 3])
def test_of_a_folder_of_an_earlier_version_only_the_files_of_the_engine_go(version, engine, saved):
    as_it_was(saved, version)
    (saved / "facts.json").write_text("{}")
    for name in ("notes.json", "thesis.tex"):
        (saved / name).write_text("precious")
    edit_manifest(lambda manifest: manifest.update(files=FILES))(saved)
    engine.save(saved)
    assert sorted(Engine.load(saved)) == ["a", "b", "c"]
    names = {"manifest.json", contents(saved).name, "notes.json", "thesis.tex"}
    assert {path.name for path in saved.iterdir()} == names


def test_a_file_is_left_alone(engine, tmp_path):
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(IndexFormatError):
        engine.save(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "precious"


def test_a_failed_save_leaves_what_was_there(engine, saved, monkeypatch):
    before = seen(engine)

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    engine.unsubscribe("a")
    with pytest.raises(OSError, match="disk full"):
        engine.save(saved)
    monkeypatch.undo()
    assert seen(Engine.load(saved)) == before
    assert [path.name for path in saved.parent.iterdir()] == ["engine"]


# ---------------------------------------------------------------- damage


def edit_manifest(change):
    def damage(folder):
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest))

    return damage


def edit_table(change):
    def damage(folder):
        path = contents(folder) / "texts.arrow"
        table = change(read_table(path))
        with open(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        seal(folder)

    return damage


def truncate(folder):
    path = contents(folder) / "texts.arrow"
    path.write_bytes(path.read_bytes()[:-20])


def replaced(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


DAMAGE = {
    "no folder": shutil.rmtree,
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "no table": lambda folder: (contents(folder) / "texts.arrow").unlink(),
    "empty manifest": lambda folder: (folder / "manifest.json").write_text(""),
    "manifest of bytes": lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe\x00"),
    "manifest is a list": lambda folder: (folder / "manifest.json").write_text("[]"),
    "manifest is null": lambda folder: (folder / "manifest.json").write_text("null"),
    "deep manifest": lambda folder: (folder / "manifest.json").write_text("[" * 100_000),
    "another format": edit_manifest(lambda manifest: manifest.update(format="other")),
    "a later version": edit_manifest(lambda manifest: manifest.update(version=99)),
    "no schema": edit_manifest(lambda manifest: manifest.pop("schema")),
    "unknown type": edit_manifest(lambda manifest: manifest.update(schema={"x": "money"})),
    "schema is text": edit_manifest(lambda manifest: manifest.update(schema="x")),
    "no limits": edit_manifest(lambda manifest: manifest.pop("limits")),
    "unknown limit": edit_manifest(lambda manifest: manifest["limits"].update(max_fun=1)),
    "limit is text": edit_manifest(lambda manifest: manifest["limits"].update(max_depth="deep")),
    "no algorithm": edit_manifest(lambda manifest: manifest.pop("algorithm")),
    "wrong count": edit_manifest(lambda manifest: manifest.update(subscriptions=2)),
    "truncated table": truncate,
    "table of bytes": lambda folder: (contents(folder) / "texts.arrow").write_bytes(b"not parquet"),
    "empty table file": lambda folder: (contents(folder) / "texts.arrow").write_bytes(b""),
    "no id column": edit_table(lambda table: table.drop(["id"])),
    "no expression column": edit_table(lambda table: table.drop(["expression"])),
    "bad expression": edit_table(lambda table: replaced(table, "expression", ["x <", "TRUE", "TRUE"])),
    "null expression": edit_table(lambda table: replaced(table, "expression", [None, "TRUE", "TRUE"])),
    "same id twice": edit_table(lambda table: replaced(table, "id", ["a", "a", "c"])),
    "null id": edit_table(lambda table: replaced(table, "id", [None, "b", "c"])),
    "expression outside the schema": edit_table(lambda table: replaced(table, "expression", ["zzz"] * 3)),
    "bound is text": edit_table(lambda table: replaced(table, "valid_from", ["noon", None, None])),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_folder_is_an_index_format_error_that_names_it(damage, saved):
    damage(saved)
    with pytest.raises(IndexFormatError) as caught:
        Engine.load(saved)
    assert str(saved) in str(caught.value)


def test_a_text_that_was_tampered_with_is_found(tmp_path):
    engine = Engine()
    engine.subscribe("a", "price = 1234567")
    engine.save(tmp_path / "engine")
    path = contents(tmp_path / "engine") / "texts.arrow"
    content = path.read_bytes()
    assert b"price = 1234567" in content
    path.write_bytes(content.replace(b"price = 1234567", b"price = 1234568"))
    with pytest.raises(IndexFormatError, match="is damaged"):
        Engine.load(tmp_path / "engine")


def alternatives(count):
    """A short text of two to the power of so many clauses."""
    return " AND ".join(f"(a{at} = 1 OR b{at} = 1)" for at in range(count))


@pytest.mark.parametrize(("rows", "most"), [(1, 65_536), (3, 1_000), (30, 575)])
def test_a_short_text_that_a_folder_allows_to_grow_beyond_measure_is_refused_before_it_does(
    rows, most, tmp_path, monkeypatch
):
    if rows > 1:
        monkeypatch.setattr(persistence, "MOST_CLAUSES", 3_000)
    engine = Engine("reference")
    engine.subscribe_many((id, "x = 1") for id in range(rows))
    engine.save(tmp_path / "it")
    edit_table(lambda table: replaced(table, "expression", [alternatives(24)] * rows))(tmp_path / "it")
    edit_manifest(lambda manifest: manifest["limits"].update(max_clauses=10**9, max_work=10**15))(tmp_path / "it")
    with pytest.raises(IndexFormatError, match=f"more than {most:,} alternatives"):
        Engine.load(tmp_path / "it")


def test_texts_that_larger_limits_allowed_are_still_loaded(tmp_path):
    engine = Engine("reference", limits=Limits(max_clauses=5_000, max_work=10_000_000))
    engine.subscribe_many([(1, alternatives(9)), *((id, "x = 1") for id in range(2, 800))])
    engine.save(tmp_path / "it")
    assert sorted(Engine.load(tmp_path / "it")) == list(range(1, 800))


def as_it_was(folder, version):
    """Make a folder one of an earlier version: files in the folder itself, texts in Parquet."""
    pq.write_table(read_table(contents(folder) / "texts.arrow"), folder / "subscriptions.parquet")
    shutil.rmtree(contents(folder))

    def change(manifest):
        manifest["version"] = version
        for later in ("files", "generation", "keep_text", *(("options", "form") if version == 1 else ())):
            del manifest[later]

    edit_manifest(change)(folder)


@pytest.mark.parametrize("version", [1, 3])
def test_a_folder_of_an_earlier_version_is_still_read_and_replaced(version, engine, saved):
    as_it_was(saved, version)
    loaded = Engine.load(saved)
    assert seen(loaded) == seen(engine)
    loaded.save(saved)
    assert seen(Engine.load(saved)) == seen(engine)
    assert not (saved / "subscriptions.parquet").exists()


def test_a_table_of_an_earlier_version_that_is_damaged_says_so(saved):
    as_it_was(saved, 3)
    path = saved / "subscriptions.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(IndexFormatError):
        Engine.load(saved)


def test_a_table_of_an_earlier_version_that_would_become_huge_is_refused(saved):
    as_it_was(saved, 3)
    rows = 2_000_000
    same = pa.array(["TRUE"] * rows).dictionary_encode()
    many = pa.table({"id": pa.array([0] * rows), "expression": same, "owner": same})
    pq.write_table(many, saved / "subscriptions.parquet", compression="zstd")
    edit_manifest(lambda manifest: manifest.update(subscriptions=rows))(saved)
    with pytest.raises(IndexFormatError, match="claims to hold"):
        Engine.load(saved)


def test_without_verifying_a_sound_folder_is_the_same(engine, saved):
    assert seen(Engine.load(saved, verify=False)) == seen(engine)


@pytest.mark.kernel
def test_expressions_are_saved_as_texts_and_an_index_as_it_is(engine, saved, tmp_path):
    assert json.loads((saved / "manifest.json").read_text())["form"] == "texts"
    index = Engine.load(saved, algorithm="propagation")
    index.save(tmp_path / "index")
    assert json.loads((tmp_path / "index" / "manifest.json").read_text())["form"] == "index"
    assert not (contents(tmp_path / "index") / "texts.arrow").exists()
    event = {"x": 0.5, "name": "it's x"}
    assert Engine.load(tmp_path / "index").match(event, at=NOON) == engine.match(event, at=NOON)


@pytest.mark.kernel
def test_auto_saves_a_few_as_texts_with_its_options(tmp_path):
    engine = Engine(small=3)
    engine.subscribe_many((at, f"x = {at}") for at in range(3))
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert loaded.algorithm == "reference"
    loaded.subscribe(3, "x = 3")
    assert loaded.algorithm == "dynamic"


def test_an_algorithm_that_is_not_there_is_named(saved):
    edit_manifest(lambda manifest: manifest.update(algorithm="quantum"))(saved)
    with pytest.raises(UnknownAlgorithmError, match="no algorithm 'quantum'"):
        Engine.load(saved)
    assert len(Engine.load(saved, algorithm="reference")) == 3


@given(st.data(), events())
@settings(max_examples=40)
def test_a_byte_gone_wrong_never_gives_another_kind_of_error(tmp_path_factory, data, event):
    folder = tmp_path_factory.mktemp("bytes") / "engine"
    engine = Engine("reference")
    engine.subscribe_many([("a", "x = 1"), ("b", "x IN (1, 'a') OR a.b < 5")])
    engine.save(folder)
    path = data.draw(st.sampled_from([folder / "manifest.json", contents(folder) / "texts.arrow"]))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with contextlib.suppress(HarkenError):
        Engine.load(folder, algorithm="reference").match(event)
    shutil.rmtree(folder.parent)


def test_others_may_read_what_was_saved(tmp_path):
    Engine().save(tmp_path / "engine")
    assert (tmp_path / "engine").stat().st_mode & 0o055 == 0o055


def test_a_file_is_no_saved_engine(tmp_path):
    (tmp_path / "engine").write_text("something else")
    with pytest.raises(IndexFormatError, match="is not a saved engine, which is a folder"):
        Engine.load(tmp_path / "engine")
