"""A saved index that is damaged says which file it is, and never reaches a kernel."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harken import Engine
from harken.bench.damage import contents as inside
from harken.errors import HarkenError, IndexFormatError
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
