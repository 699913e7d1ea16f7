"""What goes wrong with a database is told, without its password, and takes one call with it."""

from __future__ import annotations

import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

from harken.errors import (
    DatabaseError,
    IndexFormatError,
    MissingExtraError,
)
from harken.symmetric.database import DatabaseStore
from tests.symmetric.conftest import Backend
from tests.symmetric.databases import held, state

PASSWORD = "correct-horse-battery"


def test_a_connection_that_is_lost_takes_one_call_with_it(postgres: str) -> None:
    backend = Backend("postgresql", postgres)
    store = backend.empty()
    try:
        store.put("subscriptions", [held("s", "x = 1")], "publication")
        with store._database.transaction("look", writes=False) as connection:
            process = connection.exec_driver_sql("select pg_backend_pid()").scalar()
        backend.run(f"select pg_terminate_backend({process})")
        with pytest.raises(DatabaseError, match=r"could not keep publications .*terminating connection"):
            store.put("publications", [held("p", "x = 1")], "publication")
        assert store.ids("publications") == []
        assert store.put("publications", [held("p", "x = 1")], "publication") == [(0, "s")]
    finally:
        backend.clean()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """SQLite can be told how large a file may get."""
    store = DatabaseStore(f"sqlite:///{tmp_path}/market.db")
    store.put("subscriptions", [held("s", "x = 1")], "publication")
    before = state(store)
    with store._database.transaction("shrink", writes=False) as connection:
        [(pages,)] = connection.exec_driver_sql("PRAGMA page_count")
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 10}")
    large = [held(f"large-{at}", f"name = '{'x' * 9_000}{at}'") for at in range(50)]
    with pytest.raises(DatabaseError, match=r"could not keep subscriptions .*full"):
        store.put("subscriptions", large, "publication")
    assert state(store) == before
    store.close()


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    store = DatabaseStore(f"postgresql://someone:{PASSWORD}@127.0.0.1:1/market?sslpassword={PASSWORD}")
    assert PASSWORD not in repr(store)
    with pytest.raises(DatabaseError, match="refused") as caught:
        store.count("subscriptions")
    assert caught.value.where == "postgresql+psycopg://someone:***@127.0.0.1:1/market"
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="unable to open database file"):
        DatabaseStore(f"sqlite:///{tmp_path}/none/market.db").count("subscriptions")


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "market.db").write_text("dear diary " * 1_000)
    with pytest.raises(DatabaseError, match="not a database"):
        DatabaseStore(f"sqlite:///{tmp_path}/market.db").count("subscriptions")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"someone:{PASSWORD}@host/market", "not a database URL"),
        (f"postgresql://someone:a@{PASSWORD}:{PASSWORD}/market", "not a database URL"),
        (f"mysql://someone:{PASSWORD}@host/market", "found mysql://"),
        ("sqlite://", "name a file"),
        ("sqlite:///:memory:", "name a file"),
    ],
)
def test_a_url_that_will_not_do_is_told_at_once(url: str, said: str) -> None:
    with pytest.raises(DatabaseError, match=said) as caught:
        DatabaseStore(url)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", ["", "a b", "x; drop table y", "Upper", "ä", "x" * 41])
def test_a_schema_name_that_will_not_do_is_told_at_once(name: str) -> None:
    for url in ("sqlite:///market.db", "postgresql://host/market"):
        with pytest.raises(DatabaseError, match="a schema name has"):
            DatabaseStore(url, schema_name=name)


def test_another_encoding_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="encoding is one of"):
        DatabaseStore("sqlite:///market.db", encoding="mine")  # type: ignore[arg-type]


def test_tables_of_another_version_or_encoding_or_maker_are_left_alone(backend: Backend) -> None:
    backend.empty().put("subscriptions", [held("s", "x = 1")], "publication")
    with pytest.raises(IndexFormatError, match=r"in the encoding 'ranges'.*pass encoding='ranges'"):
        backend.again(encoding="paper").count("subscriptions")
    backend.run(f"update {backend.table('layout')} set version = 3")
    with pytest.raises(IndexFormatError, match="layout 3, and this Harken knows layout 2"):
        backend.again().count("subscriptions")
    backend.run(f"drop table {backend.table('layout')}")
    with pytest.raises(IndexFormatError, match="that Harken has not made"):
        backend.again().count("subscriptions")
    backend.run(f"create table {backend.table('layout')} (colour text)")
    with pytest.raises(IndexFormatError, match="is not as Harken makes it"):
        backend.again().count("subscriptions")
    assert backend.run(f"select id from {backend.table('subscriptions')}") == [('"s"',)]


def test_stores_of_several_names_share_a_database(backend: Backend) -> None:
    one, other = backend.empty(), backend.empty()
    one.put("subscriptions", [held("s", "x = 1")], "publication")
    assert (one.ids("subscriptions"), other.ids("subscriptions")) == (["s"], [])


def test_two_that_make_the_tables_at_once_both_succeed(backend: Backend) -> None:
    stores = [backend.empty(), *(backend.again() for _ in range(3))]
    failures: list[BaseException] = []

    def use(store: DatabaseStore) -> None:
        try:
            store.count("subscriptions")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_without_sqlalchemy_or_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(MissingExtraError, match=r"harken\[postgres\]"):
            DatabaseStore("postgresql://host/market")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError, match=r"harken\[database\]"):
        DatabaseStore("sqlite:///market.db")


def test_importing_the_package_loads_no_driver() -> None:
    code = "import sys, harken.symmetric.database; print('sqlalchemy' in sys.modules or 'psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_sqlite_flushes_every_transaction_and_lets_readers_read(tmp_path: Path) -> None:
    store = DatabaseStore(f"sqlite:///{tmp_path}/market.db")
    with store._database.transaction("look", writes=False) as connection:
        settings = [
            connection.exec_driver_sql(f"PRAGMA {each}").scalar() for each in ("journal_mode", "synchronous")
        ]
    assert settings == ["wal", 2]
    store.close()
