"""Checkpoints and outputs belong to one stream, and lie apart."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from harken.errors import (
    ArgumentError,
    ArgumentTypeError,
    DatabaseError,
    EventError,
    SchemaError,
    SinkError,
    StorageError,
    StreamError,
)
from harken.spark import (
    DatabaseSink,
    Query,
    Subscriptions,
    TableSink,
    match_stream,
    repin_batch,
    skip_batch,
)
from harken.spark.streaming.checkpoints import Checkpoint
from harken.spark.streaming.ledger import Ledger
from harken.spark.streaming.sinks.contract import are_one
from harken.spark.subscriptions.readers import Readers
from tests.spark.streaming.scenes import Scene, crash, fail_to

# Whose batches these are


def test_a_new_checkpoint_with_an_old_output_is_refused(scene: Scene, tmp_path: Path) -> None:
    """Its batches would be taken for repetitions."""
    database = DatabaseSink(f"sqlite:///{tmp_path}/matches.db")
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run()
    old = scene.checkpoint
    scene.checkpoint = old.with_name("another")
    refused = rf"{re.escape(str(scene.table.path))} has the batches of another query.*{re.escape(str(old))}"
    with pytest.raises(SinkError, match=rf"{refused}; write to another place, or go on with that checkpoint"):
        scene.start()
    scene.run(sink=database)
    scene.checkpoint = old.with_name("a third")
    with pytest.raises(SinkError, match=r"table notifications of .* has the batches of another"):
        scene.start(sink=database)
    assert scene.matches() == {0: [(1, "a")]}


@pytest.mark.parametrize("theirs", ["batch=0/part-0.parquet", "part-0.parquet"])
def test_an_output_with_files_of_others_is_refused(scene: Scene, theirs: str) -> None:
    """They would be taken for batches of this stream, or read as such."""
    file = scene.table.path / theirs
    file.parent.mkdir(parents=True)
    file.write_bytes(b"theirs")
    with pytest.raises(SinkError, match="files that are those of no stream; write to another folder"):
        scene.run()
    assert file.read_bytes() == b"theirs"


def test_rejects_are_those_of_one_query_too(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions = Subscriptions.create(tmp_path / "typed", schema={"x": "string"})
    scene.subscriptions.append([("a", "x = '1'")])
    scene.arrive((1, 1))
    rejects = TableSink(tmp_path / "rejects")
    scene.run(on_error="collect", rejects=rejects)
    scene.checkpoint = tmp_path / "another"
    other = TableSink(tmp_path / "other")
    with pytest.raises(SinkError, match="batches of another query"):
        scene.start(sink=other, on_error="collect", rejects=rejects)


def test_a_checkpoint_whose_half_was_removed_is_refused(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x = 1")])
    scene.arrive((1, 1))
    scene.run()
    shutil.rmtree(scene.checkpoint / "spark")
    with pytest.raises(StreamError, match=r"the ledger in .*was removed, or replaced; start with a new"):
        scene.start()
    assert scene.matches() == {0: [(1, "a")]}


def test_an_address_that_is_not_supported_is_refused_by_name(scene: Scene) -> None:
    with pytest.raises(StorageError, match="addresses with wasb: are not supported"):
        scene.start(sink=TableSink("wasb://box/matches"))
    scene.checkpoint = "dbfs:/checkpoint"  # type: ignore[assignment]
    with pytest.raises(StorageError, match="addresses with dbfs: are not supported"):
        scene.start()


# ---------------------------------------------------------------- whose checkpoint, and where matches go


def test_folders_of_a_stream_lie_apart(scene: Scene, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "link").symlink_to(tmp_path)
    for options in (
        {"sink": TableSink(out), "rejects": out},
        {"sink": TableSink(out), "rejects": out / "rejects"},
        {"sink": TableSink(scene.checkpoint)},
        {"sink": TableSink(scene.checkpoint.parent)},
        {"sink": TableSink(scene.subscriptions.folder.child("matches"))},
        {"sink": TableSink(out), "rejects": tmp_path / "events" / ".." / "out"},
        {"sink": TableSink(out), "rejects": tmp_path / "link" / "out" / "rejects"},
    ):
        with pytest.raises(ArgumentError, match=r"are one folder|lie in each other"):
            scene.start(on_error="collect" if "rejects" in options else "raise", **options)
    assert not out.exists()
    assert not scene.checkpoint.exists()


@pytest.mark.parametrize("place", ["spark", "spark/commits", "harken/ledger", "harken"])
def test_rejects_lie_beside_what_else_is_in_a_checkpoint(scene: Scene, place: str) -> None:
    with pytest.raises(ArgumentError, match="rejects and checkpoint lie in each other"):
        scene.start(on_error="collect", rejects=scene.checkpoint / place)
    assert not scene.checkpoint.exists()


def test_a_file_is_no_folder(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArgumentError, match=r"output is to be a folder, and .*file is a file"):
        scene.start(sink=TableSink(tmp_path / "file"))


def test_columns_of_another_type_than_is_declared_are_told_at_the_start(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions = Subscriptions.create(tmp_path / "typed", schema={"x": "string"})
    with pytest.raises(SchemaError, match="'x' is declared string, found bigint"):
        scene.start()
    assert not scene.checkpoint.exists()


def test_a_sink_is_no_class(scene: Scene) -> None:
    with pytest.raises(ArgumentTypeError, match="output is a sink or a folder, found the class TableSink"):
        scene.start(sink=TableSink)  # type: ignore[arg-type]


def test_columns_that_have_become_of_another_type_are_told_at_the_start(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run(keep=["x"])
    for columns, said in {
        "id string, x bigint": "has bigint in the column 'event', and it would be string now",
        "id bigint, x double": "has bigint in the column 'x', and it would be double now",
    }.items():
        with pytest.raises(SinkError, match=said):
            scene.start(scene.events(columns), keep=["x"])
    scene.arrive((2, 5))
    scene.run(keep=["x"])
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "a")]}


def test_a_kept_column_may_be_called_like_one_of_the_rejects(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions = Subscriptions.create(tmp_path / "typed", schema={"x": "int"})
    scene.subscriptions.append([("a", "x > 1")])
    for number in (1, 2):
        scene.arrive({"id": number, "x": 5, "value": 7})
        scene.run(scene.events("id bigint, x bigint, value bigint"), keep=["value"], on_error="collect")
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "a")]}


@pytest.mark.parametrize("step", [(Checkpoint, "note_output"), (Readers, "note"), (Ledger, "enter")])
@pytest.mark.parametrize("then", ["start", "skip", "repin"])
def test_a_first_batch_that_fails_early_does_not_hold_a_stream_to_the_output_of_before(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: tuple[type, str], then: str
) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    other = TableSink(tmp_path / "elsewhere")
    scene.arrive((2, 5))

    with monkeypatch.context() as patched:
        patched.setattr(*step, crash)
        fail_to(lambda: scene.run(sink=other))
    if then == "skip":
        skip_batch(scene.checkpoint, reason="a test")
    elif then == "repin":
        repin_batch(scene.checkpoint, scene.subscriptions, other)
    scene.run(sink=other)
    assert scene.matches() == {0: [(1, "a")]}
    assert [batch for batch in (0, 1) if other.has(batch)] == ([] if then == "skip" else [1])


def test_a_class_of_the_program_that_was_started_may_be_imported_elsewhere() -> None:
    kind = "a sink of the type "
    assert are_one(f"{kind}Own", f"{kind}jobs.market.Own")
    assert are_one(f"{kind}jobs.market.Own", f"{kind}Own")
    assert not are_one(f"{kind}jobs.market.Own", f"{kind}jobs.other.Own")
    assert not are_one(f"{kind}Own", f"{kind}market.MyOwn")


def test_a_checkpoint_goes_on_with_the_subscriptions_it_began_with(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    other = Subscriptions.create(tmp_path / "others")
    other.append([("stranger", "x > 1")])
    mine, scene.subscriptions = scene.subscriptions, other
    scene.arrive((2, 5))
    with pytest.raises(StreamError, match=r"is that of a stream of the subscriptions in .*, and these are others"):
        scene.start()
    scene.subscriptions = mine
    scene.run()
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "a")]}


def test_from_another_output_on_batches_go_there(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    scene.arrive((2, 5))
    other = TableSink(tmp_path / "elsewhere")
    scene.run(sink=other)
    assert scene.matches() == {0: [(1, "a")]}
    assert other.read(scene.spark).collect() == [(2, "a", 1)]
    assert json.loads((scene.checkpoint / "harken" / "output.json").read_text())["place"] == str(other.path)


def test_a_batch_that_is_pending_does_not_go_to_another_output(scene: Scene, tmp_path: Path) -> None:
    """The output of before may have taken it."""
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    (scene.checkpoint / "spark" / "commits" / "0").unlink()
    with pytest.raises(StreamError, match=r"went to .* so far, not to .*name that one"):
        scene.start(sink=TableSink(tmp_path / "elsewhere"))
    scene.run()
    assert scene.matches() == {0: [(1, "a")]}


class Plain:
    """A sink of somebody else's, which knows nothing but how to write."""

    def __init__(self) -> None:
        self.rows: list[tuple[object, ...]] = []

    def write(self, batch: int, matches: DataFrame, query: Query) -> None:
        self.rows += [(batch, *row) for row in matches.collect()]


def test_a_batch_that_is_pending_stays_with_the_sink_of_before_though_that_has_no_place(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    (scene.checkpoint / "spark" / "commits" / "0").unlink()
    plain = Plain()
    with pytest.raises(StreamError, match=r"went to .*matches so far, not to a sink of the type .*Plain"):
        scene.start(sink=plain)
    scene.run()
    scene.arrive((2, 5))
    scene.run(sink=plain)
    (scene.checkpoint / "spark" / "commits" / "1").unlink()
    with pytest.raises(StreamError, match=r"went to a sink of the type .*Plain so far, not to .*matches"):
        scene.start()
    assert plain.rows == [(1, 2, "a")]
    assert scene.matches() == {0: [(1, "a")]}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("had", [True, False])
def test_a_first_batch_that_fails_stays_with_the_output_that_it_was_for(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, had: bool
) -> None:
    """Whether the output has taken it or not: the next attempt is to look there, and nowhere else."""
    scene.subscriptions.append([("a", "x > 1")])
    if had:
        scene.arrive((0, 5))
        scene.run()
    scene.arrive((1, 5))
    other, batch = TableSink(tmp_path / "elsewhere"), int(had)
    write = TableSink.write

    def failing(self: TableSink, *given: object) -> None:
        if moment == "after":
            write(self, *given)  # type: ignore[arg-type]
        raise OSError("the machine goes down")

    with monkeypatch.context() as patch:
        patch.setattr(TableSink, "write", failing)
        with pytest.raises(StreamingQueryException, match="goes down"):
            scene.run(sink=other)
    with pytest.raises(StreamError, match=r"went to .*elsewhere so far, not to .*matches"):
        scene.start()
    scene.run(sink=other)
    assert other.read(scene.spark).collect() == [(1, "a", batch)]
    assert scene.matches() == ({0: [(0, "a")]} if had else {})


def test_an_output_with_batches_of_nobody_that_are_yet_to_come_is_refused(scene: Scene, tmp_path: Path) -> None:
    """They would be taken for done; those that came before may have been copied."""
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((0, 5))
    scene.run()
    scene.arrive((1, 5))
    copied, other = tmp_path / "copied", tmp_path / "other"
    for batch, folder in ((0, copied), (1, other)):
        shutil.copytree(scene.table.path / "batch=0", folder / f"batch={batch}")
    with pytest.raises(SinkError, match="files that are those of no stream"):
        scene.start(sink=TableSink(other))
    scene.run(sink=TableSink(copied))
    assert sorted(TableSink(copied).read(scene.spark).collect()) == [(0, "a", 0), (1, "a", 1)]


def test_an_output_of_other_columns_or_another_format_is_told_before_the_stream_begins(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    scene.arrive((2, 5))
    with pytest.raises(
        SinkError, match="has the columns event, subscription, and these are event, subscription, x"
    ):
        scene.start(keep=["x"])
    with pytest.raises(SinkError, match="has the columns event, subscription, and these are event, subscriptions"):
        scene.start(how="grouped")
    with pytest.raises(SinkError, match="is a table of parquet, not of json; write to another folder"):
        scene.start(sink=TableSink(scene.table.path, "json"))
    scene.run()
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "a")]}


def test_an_output_is_a_sink_or_a_folder(scene: Scene) -> None:
    for given in (None, 7, ["out"]):
        with pytest.raises(ArgumentTypeError, match="output is a sink or a folder"):
            match_stream(scene.events(), scene.subscriptions, given, checkpoint=scene.checkpoint)  # type: ignore[arg-type]
    assert not scene.checkpoint.exists()


def test_a_database_that_cannot_be_reached_is_told_before_the_stream_begins(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    with pytest.raises(DatabaseError, match="unable to open"):
        scene.start(sink=DatabaseSink(f"sqlite:///{tmp_path}/missing/x.db"))
    scene.run()
    assert scene.matches() == {0: [(1, "a")]}


def test_a_batch_is_not_repinned_for_another_output(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    (scene.checkpoint / "spark" / "commits" / "0").unlink()
    with pytest.raises(StreamError, match=r"went to .* so far, not to"):
        repin_batch(scene.checkpoint, scene.subscriptions, tmp_path / "typo")


def test_what_a_sink_cannot_take_is_told_before_the_stream_begins(scene: Scene, tmp_path: Path) -> None:
    database = DatabaseSink(f"sqlite:///{tmp_path}/x.db")
    for said, options in {
        "takes only the ids, not x": {"sink": database, "keep": ["x"]},
        "needs a column 'subscription'": {"sink": database, "how": "grouped"},
        "takes the columns 'x' and 'X' for one": {
            "keep": ["x", "X"],
            "events": scene.events("id int, x int, X int"),
        },
    }.items():
        with pytest.raises((SinkError, EventError), match=said):
            scene.start(**options)
    with pytest.raises(ArgumentTypeError, match="subscriptions is Subscriptions, found str"):
        match_stream(scene.events(), "subscriptions", tmp_path / "out", checkpoint=tmp_path / "c")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="or has a trigger, not both"):
        match_stream(
            scene.events(),
            scene.subscriptions,
            tmp_path / "out",
            checkpoint=tmp_path / "c",
            trigger="1 second",
            available_now=True,
        )


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with Spark Connect: who starts a stream does not see its places, and who does its batches does."""
    monkeypatch.setattr("harken.spark.streaming.stream._is_remote", lambda events: True)


@pytest.mark.usefixtures("remote")
def test_places_that_nobody_saw_at_the_start_are_looked_at_with_the_first_batch(
    scene: Scene, tmp_path: Path
) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.spark.sql("select 77L event, 'old' subscription").write.parquet(f"{tmp_path}/taken/batch=0")
    with pytest.raises(StreamingQueryException, match="has files that are those of no stream"):
        scene.run(sink=TableSink(tmp_path / "taken"))
    scene.run()
    (scene.checkpoint / "spark" / "commits" / "0").unlink()
    with pytest.raises(StreamingQueryException, match=r"went to .*matches so far, not to .*elsewhere"):
        scene.run(sink=TableSink(tmp_path / "elsewhere"))
    scene.run()
    assert scene.matches() == {0: [(1, "a")]}
    assert not list((tmp_path / "elsewhere").glob("batch=*"))


def test_a_start_that_fails_does_not_change_where_a_running_stream_writes(scene: Scene, tmp_path: Path) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    running = scene.start(trigger="0 seconds", name="market")
    try:
        running.processAllAvailable()
        with pytest.raises(Exception, match="market"):  # one of that name is active
            scene.start(sink=TableSink(tmp_path / "elsewhere"), trigger="0 seconds", name="market")
        scene.arrive((2, 5))
        running.processAllAvailable()
    finally:
        running.stop()
    (scene.checkpoint / "spark" / "commits" / "1").unlink(missing_ok=True)
    with pytest.raises(StreamError, match=r"went to .*matches so far, not to .*elsewhere"):
        scene.start(sink=TableSink(tmp_path / "elsewhere"))
    scene.run()
    assert scene.matches() == {0: [(1, "a")], 1: [(2, "a")]}


@pytest.mark.parametrize("name", ["output", "query", "subscriptions"])
@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_damaged_file_of_a_checkpoint_is_named(scene: Scene, name: str, text: str) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    (scene.checkpoint / "spark" / "commits" / "0").unlink()
    (scene.checkpoint / "harken" / f"{name}.json").write_text(text)
    with pytest.raises(StreamError, match=rf"harken/{name}\.json is damaged: "):
        scene.start()


@pytest.mark.parametrize("name", [".query", ".schema"])
def test_a_damaged_file_of_a_table_is_named(scene: Scene, name: str) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run()
    (scene.table.path / name).write_text("{")
    with pytest.raises(SinkError, match=rf"matches/\{name} is damaged: "):
        scene.start()


def test_another_class_of_the_same_name_is_another_place(scene: Scene) -> None:
    scene.subscriptions.append([("a", "x > 1")])
    scene.arrive((1, 5))
    scene.run(sink=Plain())
    (scene.checkpoint / "spark" / "commits" / "0").unlink()
    with pytest.raises(StreamError, match=r"went to .*test_ownership\.Plain so far, not to .*elsewhere\.Plain"):
        scene.start(sink=type("Plain", (Plain,), {"__module__": "elsewhere"})())


class Careful:
    """A sink of somebody else's that takes a batch once."""

    def __init__(self) -> None:
        self.rows: dict[int, list[tuple[object, ...]]] = {}

    def write(self, batch: int, matches: DataFrame, query: Query) -> None:
        self.rows.setdefault(batch, [tuple(row) for row in matches.collect()])


def test_rejects_do_not_go_where_matches_go_nor_where_there_is_no_room_for_them(
    scene: Scene, tmp_path: Path
) -> None:
    careful, database = Careful(), f"sqlite:///{tmp_path}/matches.db"
    with pytest.raises(ArgumentError, match=r"matches and rejects both go to a sink of the type .*Careful"):
        scene.start(sink=careful, on_error="collect", rejects=careful)
    with pytest.raises(ArgumentError, match="matches and rejects both go to"):
        scene.start(sink=DatabaseSink(database), on_error="collect", rejects=DatabaseSink(database))
    with pytest.raises(SinkError, match="a database sink takes pairs"):
        scene.start(on_error="collect", rejects=DatabaseSink(database))
    assert not scene.checkpoint.exists()
