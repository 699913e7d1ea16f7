"""Every hostile input is refused promptly, with its own error, wherever it comes in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import reduce
from operator import invert
from pathlib import Path

import pytest

from harken import Engine, algorithms, attr
from harken.files import match_chunk, read_events, read_schema, read_subscriptions
from tests.cli.running import Outcome, run
from tests.hostile.recipes import Case, cases, made, promptly, write

GOOD = ("good 1", "good 2")


@pytest.fixture(autouse=True)
def prompt(compiled_kernels: None) -> Iterator[None]:
    with promptly():
        yield


def named(*places: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases(*places), ids=lambda case: case.name)


def schema_arguments(case: Case, folder: Path) -> list[str]:
    if case.schema is None:
        return []
    return ["--schema", str(write(folder, "schema.json", json.dumps(case.schema)))]


def assert_told_without_traceback(done: Outcome, case: Case) -> None:
    assert done.status == case.status
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.out + done.err


def test_there_are_many_cases_with_names_of_their_own() -> None:
    names = [case.name for case in cases()]
    assert len(names) == len(set(names)) >= 130


@named("expression")
def test_an_expression_is_refused(case: Case) -> None:
    engine = Engine()
    with pytest.raises(case.error_class) as caught:
        engine.subscribe("s", case.make())  # type: ignore[arg-type]
    assert type(caught.value) is case.error_class
    assert case.says in str(caught.value)
    assert len(engine) == 0


@named("builder")
def test_a_built_expression_is_refused(case: Case) -> None:
    recipe = made(case.input)
    assert isinstance(recipe, dict)

    def build_and_subscribe() -> None:
        predicate = getattr(attr(recipe["attribute"]), recipe["method"])(*recipe["arguments"])
        built = reduce(lambda node, _: invert(node), range(recipe.get("inverted", 0)), predicate)
        Engine().subscribe("s", built)

    with pytest.raises(case.error_class) as caught:
        build_and_subscribe()
    assert case.says in str(caught.value)


@named("event")
def test_an_event_is_refused_alone_and_in_a_batch(case: Case) -> None:
    event = case.make()
    for algorithm in algorithms():
        engine = Engine(algorithm, case.schema)
        engine.subscribe("s", case.expression)
        with pytest.raises(case.error_class) as caught:
            engine.match(event)  # type: ignore[arg-type]
        assert case.says in str(caught.value)
        with pytest.raises(case.error_class) as caught:
            engine.match_batch([{"unasked": 1}, event])  # type: ignore[list-item]
        assert case.says in str(caught.value)
        assert caught.value.row == 1  # type: ignore[attr-defined]


@named("match")
def test_an_input_that_looks_bad_but_is_not_gives_its_verdict(case: Case) -> None:
    given = made(case.input)
    assert isinstance(given, dict)
    for algorithm in algorithms():
        engine = Engine(algorithm)
        engine.subscribe("s", given["expression"])
        assert engine.match(given["event"]) == (["s"] if case.result else [])
        assert len(engine.match_batch([given["event"]])) == int(case.result is True)


@named("subscription")
def test_a_subscription_is_refused_and_disturbs_no_other(case: Case) -> None:
    row = made(case.input)
    assert isinstance(row, dict)
    engine = Engine()
    engine.subscribe_many([(id, "x = 1") for id in GOOD])
    with pytest.raises(case.error_class) as caught:
        engine.subscribe(**row)
    assert case.says in str(caught.value)
    report = engine.subscribe_many([{"id": "other", "expression": "x = 1"}, row], on_error="collect")
    assert (report.loaded, [reject.row for reject in report.rejects]) == (1, [1])
    assert case.says in report.rejects[0].reason
    assert sorted(map(str, engine.match({"x": 1}))) == [*GOOD, "other"]


def read_all_events(path: Path, engine: Engine) -> None:
    for chunk in read_events(str(path), engine.schema):
        list(match_chunk(engine, chunk))


@named("event file")
def test_an_event_file_is_refused_with_its_name_and_line(case: Case, tmp_path: Path) -> None:
    given = made(case.input)
    assert isinstance(given, dict)
    path = write(tmp_path, given["file"], given["content"])
    engine = Engine(schema=case.schema)
    engine.subscribe("s", case.expression)
    with pytest.raises(case.error_class) as caught:
        read_all_events(path, engine)
    assert case.says in str(caught.value)
    subscriptions = write(tmp_path, "s.jsonl", json.dumps({"id": "s", "expression": case.expression}))
    output = tmp_path / "out" / "matches.csv"
    output.parent.mkdir()
    done = run("match", "-s", subscriptions, "-e", path, "-o", output, *schema_arguments(case, tmp_path))
    assert_told_without_traceback(done, case)
    assert case.says in done.err
    assert list(output.parent.iterdir()) == []


@named("subscription file")
def test_a_subscription_file_is_refused_with_its_name_and_line(case: Case, tmp_path: Path) -> None:
    given = made(case.input)
    assert isinstance(given, dict)
    path = write(tmp_path, given["file"], given["content"])
    engine = Engine(schema=case.schema)
    with pytest.raises(case.error_class) as caught:
        engine.subscribe_many(read_subscriptions(str(path)).rows)
    assert case.says in str(caught.value)
    assert len(engine) == 0
    events = write(tmp_path, "e.jsonl", '{"x": 1}\n')
    options = schema_arguments(case, tmp_path)
    assert_told_without_traceback(run("match", "-s", path, "-e", events, *options), case)
    checked = run("check", path, *options)
    assert checked.status in (1, 2)
    assert "Traceback" not in checked.out + checked.err


@named("schema")
def test_a_schema_file_is_refused(case: Case, tmp_path: Path) -> None:
    path = write(tmp_path, "schema.json", case.make())
    with pytest.raises(case.error_class) as caught:
        read_schema(str(path))
    assert case.says in str(caught.value)
    subscriptions = write(tmp_path, "s.csv", "id,expression\n1,x = 1\n")
    done = run("check", subscriptions, "--schema", path)
    assert_told_without_traceback(done, case)
    assert case.says in done.err


@named("arguments")
def test_arguments_are_refused(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "s.csv", "id,expression\n1,x = 1\n")
    write(tmp_path, "e.jsonl", '{"x": 1}\n')
    arguments = case.make()
    assert isinstance(arguments, list)
    done = run(*arguments)
    assert_told_without_traceback(done, case)
    assert case.says in done.err


def damage(folder: Path, how: dict[str, object]) -> None:
    if how.get("remove") == ".":
        shutil.rmtree(folder)
    elif "remove" in how:
        next(folder.rglob(str(how["remove"]))).unlink()
    elif "write" in how:
        write(folder, str(how["write"]), how["content"])
    elif "earlier" in how:  # texts as versions before had them
        damage(folder, {"set": {"version": 1, "form": "texts"}, "unset": "generation"})
        write(folder, "subscriptions.parquet", how["earlier"])
    elif "truncate" in how:
        path = next(folder.rglob(str(how["truncate"])))
        path.write_bytes(path.read_bytes()[: how["keep"]])  # type: ignore[misc]
    else:
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text())
        manifest.update(how.get("set", {}))
        manifest.pop(how.get("unset"), None)
        path.write_text(json.dumps(manifest))


@named("saved engine")
def test_a_damaged_engine_is_refused(case: Case, tmp_path: Path) -> None:
    engine = Engine("reference")
    engine.subscribe("s", "x = 1")
    engine.save(tmp_path / "engine")
    how = made(case.input)
    assert isinstance(how, dict)
    damage(tmp_path / "engine", how)
    with pytest.raises(case.error_class) as caught:
        Engine.load(tmp_path / "engine")
    assert case.says in str(caught.value)
