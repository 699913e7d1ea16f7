"""What is damaged or missing is named, or built anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harken.errors import IndexFormatError
from harken.spark import Index, Subscriptions, build_index, match
from harken.spark.index.building import Blueprint
from tests.spark.index.indexes import EVENTS, NO_SPARK, expected, pairs, sizes, texts


def test_a_damaged_part_fails_the_job_with_its_name(spark: SparkSession, store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    index = build_index(spark, store, shards=2)
    folder = index.path / "parts" / index.state().layers[0].parts[1].folder
    array = max(folder.rglob("*.npy"), key=lambda path: path.stat().st_size)
    content = bytearray(array.read_bytes())
    content[-1] ^= 1
    array.write_bytes(bytes(content))
    with pytest.raises(PySparkException) as caught:
        match(spark.createDataFrame(EVENTS), index).collect()
    assert "IndexFormatError" in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("gone", ["parts", "hidden"])
def test_what_is_missing_is_named(here: list[Blueprint], store: Subscriptions, gone: str) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, salt=1))
    state = index.refresh(NO_SPARK)
    for path in (index.path / gone).iterdir():
        path.rename(path.with_suffix(".gone"))
    with pytest.raises(IndexFormatError, match="missing"):
        pairs(state, index)


@pytest.mark.parametrize("damage", ["part gone", "file gone", "part cut", "hidden gone", "hidden cut"])
def test_refresh_notices_what_is_missing_or_cut_and_builds_anew(
    here: list[Blueprint], store: Subscriptions, damage: str
) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store, shards=2)
    store.upsert(texts(1, salt=1))
    state = index.refresh(NO_SPARK)
    kind = "hidden" if damage.startswith("hidden") else "parts"
    top = state.layers[-1]
    name = top.hides.file if kind == "hidden" else state.layers[0].parts[1].folder  # type: ignore[union-attr]
    path = index.path / kind / name
    array = path if kind == "hidden" else max(path.rglob("*.npy"), key=lambda each: each.stat().st_size)
    match damage.split():
        case "part", "gone":
            shutil.rmtree(path)
        case _, "gone":
            array.unlink()
        case _:
            array.write_bytes(array.read_bytes()[:-1])
    again = Index(index.path).refresh(NO_SPARK)
    assert (again.version, again.covers, sizes(again)) == (3, 2, [20])
    assert pairs(again, index) == expected(store)
    assert index.refresh(NO_SPARK) == again
    store.upsert(texts(2, salt=1))
    assert pairs(index.refresh(NO_SPARK), index) == expected(store)


def test_refresh_reads_everything_if_asked_to(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store)
    store.upsert(texts(1, salt=1))
    state = index.refresh(NO_SPARK)
    assert index.refresh(NO_SPARK, verify=True) == state
    for kind in ("parts", "hidden"):
        # Of what the latest version names: others may lie there, of versions before it.
        last = index.state().layers[-1]
        name = last.parts[0].folder if kind == "parts" else last.hides.file
        place = index.path / kind / name
        files = [place] if place.is_file() else place.rglob("*.npy")
        array = max(files, key=lambda each: each.stat().st_size)
        content = bytearray(array.read_bytes())
        content[len(content) // 2] ^= 1
        array.write_bytes(bytes(content))
        before = index.state()
        assert Index(index.path).refresh(NO_SPARK) == before, "of the same size"
        after = index.refresh(NO_SPARK, verify=True)
        assert after.version == before.version + 1
        assert pairs(after, index) == expected(store)
        store.upsert(texts(2, salt=1))
        index.refresh(NO_SPARK)


def test_a_damaged_list_of_hidden_ids_is_noticed(here: list[Blueprint], store: Subscriptions) -> None:
    store.append(texts(*range(20)))
    index = build_index(NO_SPARK, store)
    store.delete([1])
    state = index.refresh(NO_SPARK)
    (path,) = (index.path / "hidden").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(IndexFormatError, match="damaged"):
        pairs(state, index)


def test_a_folder_without_a_manifest_is_named(tmp_path: Path, store: Subscriptions) -> None:
    for folder in (tmp_path / "nothing", store.path / "segments"):
        with pytest.raises(
            IndexFormatError, match="holds no index: its manifest is missing; build_index makes one"
        ):
            Index(folder)
    with pytest.raises(IndexFormatError, match="holds something else than an index"):
        Index(store.path).state()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "harken-index"}'])
def test_a_damaged_manifest_is_noticed(here: list[Blueprint], store: Subscriptions, content: str) -> None:
    store.append(texts(1))
    index = build_index(NO_SPARK, store)
    (manifest,) = (index.path / "versions").iterdir()
    manifest.write_text(content)
    with pytest.raises(IndexFormatError):
        index.state()
