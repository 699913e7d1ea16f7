"""Databases made by the version before: they get the columns that are new, once, and nothing is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from harken import Auction, SymmetricEngine
from harken.errors import IndexFormatError
from harken.symmetric.contract import Held
from harken.symmetric.semantics import boxes_of
from tests.symmetric.conftest import ENCODINGS, Backend

NEW_COLUMNS = {"subscriptions": "valid_from", "publications": "valid_from", "notices": "claimed_until"}


def made_before(backend: Backend, encoding: str) -> None:
    """Leave tables as the version before made them, with one subscription and one notice."""
    store = backend.empty(encoding=encoding)
    for side in ("subscriptions", "publications"):
        held = Held(side, boxes_of("x = 1"), "x = 1")
        store.put(side, [held], "publication", notify=True)
    store.close()
    for table, column in NEW_COLUMNS.items():
        backend.run(f"ALTER TABLE {backend.table(table)} DROP COLUMN {column}")
    backend.run(f"UPDATE {backend.table('layout')} SET version = 1")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tables_of_the_version_before_are_taken_over(backend: Backend, encoding: str) -> None:
    made_before(backend, encoding)
    with SymmetricEngine(backend.url, schema_name=backend.schema, encoding=encoding) as market:
        assert market.match("x = 1") == ["subscriptions"]
        assert market.deliver(lambda notice: None) == 1
        assert market.publish("offer", "x = 1") == ["subscriptions"]
    assert backend.run(f"SELECT version FROM {backend.table('layout')}") == [(2,)]


def test_several_that_open_old_tables_at_once_change_them_once(backend: Backend) -> None:
    made_before(backend, "ranges")

    def opens(_: int) -> list[str | int]:
        with SymmetricEngine(backend.url, schema_name=backend.schema) as market:
            return market.match("x = 1")

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(opens, range(4))) == [["subscriptions"]] * 4


def test_an_auction_of_the_version_before_goes_on(backend: Backend) -> None:
    backend.empty()
    with Auction(backend.url, schema_name=backend.schema) as auction:
        auction.offer("seller", "pencils", "price >= 1")
        auction.bid("one", "pencils", "price <= 2")
        auction.cycle()
    backend.run(f"ALTER TABLE {backend.table('auction_changes')} DROP COLUMN claimed_until")
    with Auction(backend.url, schema_name=backend.schema) as auction:
        assert auction.deliver(lambda change: None) == 1
        assert auction.close("pencils") == {"seller": "one"}


def test_tables_of_a_version_to_come_are_refused(backend: Backend) -> None:
    backend.empty().count("subscriptions")
    backend.run(f"UPDATE {backend.table('layout')} SET version = 3")
    market = SymmetricEngine(backend.url, schema_name=backend.schema)
    with market, pytest.raises(IndexFormatError, match="layout 3"):
        market.match("x = 1")
