"""Where a real PostgreSQL answers otherwise by design, it is shown: docs/semantics.md has the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
import sqlalchemy

from harken.language import parse
from harken.model.evaluation import truth
from tests.symmetric.conftest import started_postgres


@pytest.fixture(scope="module")
def asked() -> Iterator[Callable[[str], object]]:
    """What PostgreSQL, its clock in UTC, makes of an expression."""
    with started_postgres() as server:
        address = sqlalchemy.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        # Without transactions, a refusal spoils nothing that comes after.
        engine = sqlalchemy.create_engine(address, poolclass=sqlalchemy.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql("SET TimeZone = 'UTC'")
            yield lambda said: connection.exec_driver_sql(f"SELECT {said}").scalar_one()
        engine.dispose()


MOMENT = datetime(2026, 11, 15, 8, 30, tzinfo=UTC)


def test_an_offset_counts_here_and_is_ignored_by_timestamp_there(asked):
    assert truth(parse("x = TIMESTAMP '2026-11-15 10:30+02'"), {"x": MOMENT}) is True
    assert asked("TIMESTAMP '2026-11-15 10:30+02'") == datetime(2026, 11, 15, 10, 30)
    assert asked("TIMESTAMPTZ '2026-11-15 10:30+02'") == MOMENT
    assert asked("TIMESTAMP '2026-11-15 10:30+02' = TIMESTAMP '2026-11-15 10:30-08'") is True
    assert truth(parse("x = TIMESTAMP '2026-11-15 10:30-08'"), {"x": MOMENT}) is False


@pytest.mark.parametrize(
    "written",
    [
        *(
            "2026-11-15 10:30Z",
            "2026-11-15 10:30:00+0200",
            "2026-11-15T10:30:00.5-05:30",
            "2026-11-15 10:30+14:00",
        ),
        *("2026-11-15 10:30-00:00", "2026-11-15 10:30+15:59", "2026-11-15 23:59:59.999999-12", "2026-11-15"),
    ],
)
def test_an_offset_that_both_know_means_the_same_moment_to_timestamptz(asked, written):
    assert parse(f"x = TIMESTAMP '{written}'").value == asked(f"TIMESTAMPTZ '{written}'")


@pytest.mark.parametrize("offset", ["+02:60", "+02:99", "+16:00", "+24:00", "-16"])
def test_an_offset_that_is_none_is_refused_by_both(asked, offset):
    with pytest.raises(ValueError, match="no such moment"):
        parse(f"x = TIMESTAMP '2026-11-15 10:30{offset}'")
    with pytest.raises(sqlalchemy.exc.DataError):
        asked(f"TIMESTAMPTZ '2026-11-15 10:30{offset}'")


@pytest.mark.parametrize(("written", "read"), [("24:00", "2026-11-16 00:00"), ("10:30:60", "2026-11-15 10:31")])
def test_hour_24_and_second_60_are_refused_here_and_carried_over_there(asked, written, read):
    with pytest.raises(ValueError, match="no such moment"):
        parse(f"x = TIMESTAMP '2026-11-15 {written}'")
    assert asked(f"TIMESTAMP '2026-11-15 {written}'") == datetime.fromisoformat(read)
