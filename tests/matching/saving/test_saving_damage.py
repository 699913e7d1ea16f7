"""A saved index that is damaged says which file it is, and never reaches a kernel."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine
from harken.bench.damage import contents as inside
from harken.bench.damage import seal
from harken.errors import HarkenError, IndexFormatError
from harken.matching.kernels.layout import (
    AFTER,
    CAPACITY,
    KEY,
    LENGTH,
    LINE,
    NEXT,
    NODE,
    SIBLING,
    SLOT,
    TABLE,
    WIDTH,
)
from harken.matching.untrusted import read_table
from tests.matching.churning import Churn, contents, made

pytestmark = pytest.mark.kernel

AS_PYTHON = os.environ.get("NUMBA_DISABLE_JIT") == "1"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    churn = Churn(made("dynamic-without-prefetch"), "damage")
    churn.add(40)
    churn.remove(10)
    churn.check(5)
    churn.engine.subscribe(1_000_000, "x = 1", owner="Ann")
    folder = tmp_path_factory.mktemp("pristine") / "engine"
    churn.engine.save(folder)
    return folder


@pytest.fixture
def saved(pristine, tmp_path):
    return shutil.copytree(pristine, tmp_path / "engine")


def truncated(path):
    path.write_bytes(path.read_bytes()[:-1])


def emptied(path):
    path.write_bytes(b"")


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def longer(path):
    path.write_bytes(path.read_bytes() + b"\0")


def replaced_by_folder(path):
    path.unlink()
    path.mkdir()


WAYS = {
    "missing": lambda path: path.unlink(),
    "truncated": truncated,
    "empty": emptied,
    "flipped": flipped,
    "longer": longer,
    "a folder": replaced_by_folder,
}
FILES = [
    "facts.json",
    "index.clusters.words.npy",
    "index.clusters.closed.npy",
    "identities.ids.npy",
    "index.predicates.table.predicates.arrow",
    "index.predicates.dimensions.codes.arrow",
    "subscriptions.about.arrow",
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_damaged_file_is_an_index_format_error_that_names_it(way, name, saved):
    path = inside(saved) / name
    way(path)
    with pytest.raises(IndexFormatError) as caught:
        Engine.load(saved)
    assert str(path) in str(caught.value)


def test_every_file_of_a_folder_is_looked_at(saved):
    for name in contents(saved).keys() - {"manifest.json"}:
        path = inside(saved) / name
        content = path.read_bytes()
        flipped(path)
        with pytest.raises(IndexFormatError, match="checksum") as caught:
            Engine.load(saved)
        assert str(path) in str(caught.value)
        path.write_bytes(content)
    Engine.load(saved)


def edited(folder, change):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def of_words(**said):
    return lambda manifest: manifest["files"]["index.clusters.words.npy"].update(said)


MANIFESTS = {
    "shape": of_words(shape=[64]),
    "shape of more dimensions": of_words(shape=[64, 1]),
    "shape is text": of_words(shape="large"),
    "dtype": of_words(dtype="<i8"),
    "size": of_words(bytes=100),
    "size is text": of_words(bytes="large"),
    "checksum": of_words(crc32=1),
    "no shape": lambda manifest: manifest["files"]["index.clusters.words.npy"].pop("shape"),
    "no record": lambda manifest: manifest["files"].update({"index.clusters.words.npy": None}),
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS)
@pytest.mark.parametrize("verify", [True, False])
def test_a_manifest_that_says_otherwise_is_an_index_format_error_that_names_the_file(change, verify, saved):
    edited(saved, change)
    if change is MANIFESTS["checksum"] and not verify:
        Engine.load(saved, verify=False)
        return
    with pytest.raises(IndexFormatError) as caught:
        Engine.load(saved, verify=verify)
    assert str(inside(saved) / "index.clusters.words.npy") in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["files"].pop("index.clusters.words.npy"),
        lambda manifest: manifest["files"].pop("facts.json"),
        lambda manifest: manifest["files"].pop("index.predicates.table.predicates.arrow"),
        lambda manifest: manifest.pop("files"),
        lambda manifest: manifest.update(files=[]),
        lambda manifest: manifest["files"].update({"../engine/facts.json": manifest["files"]["facts.json"]}),
        lambda manifest: manifest["files"].update({"manifest.json": manifest["files"]["facts.json"]}),
        lambda manifest: manifest.update(form="pictures"),
        lambda manifest: manifest.update(algorithm="reference"),
        lambda manifest: manifest.update(algorithm="auto", options={}),
        lambda manifest: manifest.update(options={"patience": 1, "colour": "red"}),
        lambda manifest: manifest.update(options=[1]),
        lambda manifest: manifest.update(subscriptions=1),
    ],
)
def test_a_manifest_that_does_not_fit_its_folder_is_an_index_format_error(change, saved):
    edited(saved, change)
    with pytest.raises(IndexFormatError) as caught:
        Engine.load(saved)
    assert str(saved) in str(caught.value)


@pytest.mark.parametrize("other", [np.zeros(4, np.int64), np.zeros((2, 2), np.uint32), np.zeros(3, ">u4")])
@pytest.mark.parametrize("verify", [True, False])
def test_a_file_of_another_type_is_found_even_if_the_manifest_agrees_with_it(other, verify, saved):
    path = inside(saved) / "index.clusters.words.npy"
    np.save(path, other)
    with pytest.raises(IndexFormatError) as caught:
        Engine.load(saved, verify=verify)
    assert str(path) in str(caught.value)
    content = path.read_bytes()
    record = {"bytes": len(content), "crc32": zlib.crc32(content)}
    edited(saved, of_words(**record, dtype=other.dtype.str, shape=list(other.shape)))
    with pytest.raises(IndexFormatError, match=r"words is an array of .*, not of uint32 of 1"):
        Engine.load(saved, verify=verify)


def test_without_verifying_a_file_of_the_wrong_size_is_still_found(saved):
    path = inside(saved) / "index.clusters.directory.npy"
    truncated(path)
    with pytest.raises(IndexFormatError, match="bytes, and should have") as caught:
        Engine.load(saved, verify=False)
    assert str(path) in str(caught.value)


@given(st.data())
@settings(max_examples=10 if AS_PYTHON else 60, deadline=None)
def test_a_byte_gone_wrong_anywhere_never_gives_another_kind_of_error(pristine, tmp_path_factory, data):
    folder = shutil.copytree(pristine, tmp_path_factory.mktemp("bytes") / "engine")
    path = data.draw(st.sampled_from([folder / "manifest.json", *sorted(inside(folder).iterdir())]))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with contextlib.suppress(HarkenError):
        Engine.load(folder).match({"x": 1})
    shutil.rmtree(folder.parent)


# ---------------------------------------------------------------- crafted: no checksum tells


def shared_of(size):
    return 2**31 + size


def crafted(folder, name, change):
    path = inside(folder) / name
    array = np.load(path)
    change(array)
    np.save(path, array)
    seal(folder)


def put(at, value):
    def change(array):
        array.reshape(-1)[at] = np.array([value % 2**64], np.uint64).astype(array.dtype)[0]

    return change


def used(column, value):
    """Change a header word of the first block that a directory entry leads to."""
    return lambda words: put(LINE + column, value)(words)


CRAFTED = {
    "a block that leads to itself": ("index.clusters.words.npy", used(NEXT, 1)),
    "a block that leads nowhere": ("index.clusters.words.npy", used(NEXT, 10**9)),
    "more entries than there is room for": ("index.clusters.words.npy", used(LENGTH, 10**6)),
    "more room than there is": ("index.clusters.words.npy", used(CAPACITY, 2**32 - 1)),
    "no room": ("index.clusters.words.npy", used(CAPACITY, 0)),
    "more predicates than there are words": ("index.clusters.words.npy", used(WIDTH, 2**32 - 1)),
    "a block of another table": ("index.clusters.words.npy", used(TABLE, 10**6)),
    "a block of another key": ("index.clusters.words.npy", used(KEY, 10**6)),
    "a directory entry beyond the blocks": ("index.clusters.directory.npy", put(0, 10**9)),
    "a directory entry within a block": ("index.clusters.directory.npy", put(0, 2)),
    "an end elsewhere": ("index.clusters.free.npy", put(0, 1)),
    "a free block beyond all": ("index.clusters.free.npy", put(3, 2**63 - 1)),
    "a free block that is used": ("index.clusters.free.npy", put(1, 1)),
    "a location of no block": ("index.clusters.block_of.npy", put(3, 10**9)),
    "a location of no owner": ("index.clusters.block_of.npy", put(3, shared_of(10**6))),
    "owners that there are not": ("index.clusters.nodes.npy", put(slice(SLOT, None, NODE), 10**6)),
    "owners in a circle": ("index.clusters.nodes.npy", put(slice(AFTER, None, NODE), 0)),
    "siblings in a circle": ("index.clusters.nodes.npy", put(slice(SIBLING, None, NODE), 0)),
    "a shared clause of no owner": ("index.clusters.shared_head.npy", put(0, -1)),
    "a shared clause elsewhere": ("index.clusters.shared_block.npy", put(0, 10**9)),
    "free nodes that are used": ("index.clusters.spare.npy", put(2, 0)),
    "more nodes than there are": ("index.clusters.spare.npy", put(3, 10**6)),
    "a table elsewhere": ("index.clusters.base.npy", put(1, 2**62)),
    "a table that is larger": ("index.clusters.size.npy", put(1, 2**62)),
    "more clauses in a table": ("index.clusters.population.npy", put(1, 10**6)),
    "a predicate of no dimension": ("index.predicates.table.dimension.npy", put(0, 10**6)),
    "a predicate of another operator": ("index.predicates.table.operator.npy", put(0, 6)),
    "a predicate that all events satisfy": ("index.predicates.table.initial.npy", put(0, 1)),
    "a predicate in another cell": ("index.predicates.table.cell.npy", put(0, 10**6)),
    "a predicate that nobody uses": ("index.predicates.table.uses.npy", put(0, 0)),
    "a constant elsewhere": ("index.predicates.table.equal_first.npy", put(0, 10**6)),
    "room for more constants": ("index.predicates.table.equal_room.npy", put(0, 10**9)),
    "an equality that is none": ("index.predicates.table.equal.npy", put(1, 10**6)),
    "more events than numbers": ("index.statistics.present.npy", put(0, 2**60)),
    "a slot that is free twice": ("identities.free.npy", lambda array: array.__setitem__(1, array[0])),
    "a slot that is free and is not": ("identities.free.npy", put(0, 10**6)),
    "an id that comes twice": ("identities.ids.npy", lambda array: array.__setitem__(slice(None), array[-1])),
}


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("way", CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_index_never_reaches_a_kernel(way, verify, saved):
    crafted(saved, *way)
    with pytest.raises(IndexFormatError, match="is damaged"):
        Engine.load(saved, verify=verify)


def test_a_file_that_leads_elsewhere_or_is_none_is_refused(saved):
    path = inside(saved) / "facts.json"
    kept = path.rename(saved.parent / "facts.json")
    for way in (lambda: path.symlink_to(kept), lambda: os.mkfifo(path), path.mkdir):
        way()
        with pytest.raises(IndexFormatError, match="it is no file"):
            Engine.load(saved)
        path.rmdir() if path.is_dir() else path.unlink()
    shutil.move(kept, path)
    Engine.load(saved)


@pytest.mark.parametrize("name", ["../elsewhere", "data-1", "/tmp", "data-" + "g" * 32, 5, ["x"], {}])
def test_a_manifest_leads_out_of_no_folder(name, saved):
    edited(saved, lambda manifest: manifest.update(generation=name))
    with pytest.raises(IndexFormatError):
        Engine.load(saved)


def test_a_generation_that_is_a_link_is_refused(saved):
    place = inside(saved)
    moved = place.rename(saved.parent / "elsewhere")
    place.symlink_to(moved)
    with pytest.raises(IndexFormatError, match="leads elsewhere"):
        Engine.load(saved)


@pytest.mark.parametrize("options", [{"patience": "soon"}, {"margin": float("nan")}, {"adapt": None}, {"self": 1}])
def test_options_of_other_types_are_refused(options, saved):
    edited(saved, lambda manifest: manifest.update(options=options))
    with pytest.raises(IndexFormatError):
        Engine.load(saved)


def test_a_packed_table_is_refused_before_it_is_unpacked(saved):
    path = inside(saved) / "subscriptions.about.arrow"
    table = read_table(path)
    with pa.OSFile(str(path), "wb") as sink:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table)
    seal(saved)
    with pytest.raises(IndexFormatError, match="it is compressed"):
        Engine.load(saved)


def test_a_predicate_that_is_said_in_another_way_is_refused(saved):
    path = inside(saved) / "index.predicates.table.predicates.arrow"
    table = read_table(path)
    at = table.column_names.index("text")
    texts = ["superfluous" if text is None else text for text in table.column(at).to_pylist()]
    table = table.set_column(at, "text", pa.array(texts, pa.string()))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    seal(saved)
    with pytest.raises(IndexFormatError, match="not said as it is known"):
        Engine.load(saved)


def test_ids_that_were_many_and_became_few_survive(tmp_path):
    engine = Engine("propagation")
    engine.subscribe_many((at, f"x = {at}") for at in range(1_200))
    engine.unsubscribe_many(range(0, 1_200, 2))
    engine.save(tmp_path / "engine")
    loaded = Engine.load(tmp_path / "engine")
    assert list(loaded) == list(range(1, 1_200, 2))
    assert loaded.match({"x": 7}) == [7]
