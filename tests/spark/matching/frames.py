"""Events of every type, what is asked of them, and how an index is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from harken.spark import Index, Subscriptions, build_index

Ids = Mapping[int, str] | Mapping[str, str]
STRATEGIES = ("local", "grid")


def pairs(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def indexed(spark: SparkSession, path: Path, rows: Ids, shards: int = 1, **rules: Mapping[str, str]) -> Index:
    store = Subscriptions.create(path, **rules)  # type: ignore[arg-type]
    store.append(rows.items())
    return build_index(spark, store, shards=shards)


NOON = datetime(2026, 2, 28, 12, 30, 0, 1, tzinfo=UTC)
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
LARGE, SMALL = Decimal("99999999999999999999.999999999999999999"), Decimal("0.000000000000000001")
COLUMNS: dict[str, tuple[str, list[object]]] = {
    "id": ("int", [1, 2, 3, 4]),
    "whole": ("bigint", [2**53 + 1, 2**53, 2**63 - 1, None]),
    "tiny": ("tinyint", [5, -128, 127, None]),
    "real": ("double", [0.1, float(2**53), float("inf"), None]),
    "half": ("float", [0.5, 0.1, -0.0, None]),
    "price": ("decimal(38,18)", [Decimal("1.10"), SMALL, LARGE, None]),
    "flag": ("boolean", [True, False, None, None]),
    "text": ("string", ["a", "日本 \U0001f600\x00'\"\\%_\n", "", None]),
    "day": ("date", [date(2026, 2, 28), date(1969, 12, 31), date(9999, 12, 31), None]),
    "seen": ("timestamp", [NOON, BEFORE_1970, datetime(9999, 12, 30, tzinfo=UTC), None]),
    "local": ("timestamp_ntz", [NOON.replace(tzinfo=None), datetime.min, datetime.max, None]),
    "nothing": ("void", [None, None, None, None]),
    "place": (
        "struct<city:string, at:struct<zone:int, name:string>>",
        [("Bonn", (7, "x")), ("Ulm", None), (None, (8, None)), None],
    ),
    "tags": ("array<string>", [["a"], [], None, None]),
    "extra": ("map<string,int>", [{"a": 1}, {}, None, None]),
}
TYPED_SUBSCRIPTIONS = {
    1: "whole = 9007199254740993",
    2: "whole = 9007199254740992.0",
    3: "whole > 9007199254740992.0",
    4: "tiny >= 5 and tiny < 127.5",
    5: "real = 0.1",
    6: "real = 9007199254740992",
    7: "real > 1e308",
    8: "half = 0.1",
    9: "half = 0.5 or half = 0",
    10: "price = 1.10",
    11: "price < 1e-17",
    12: "price > 9223372036854775807 and price < 1e20",
    13: "flag = true",
    14: "not (flag = true)",
    15: "text = 'a'",
    16: "text like '日本%'",
    17: "text = ''",
    18: "text contains '\U0001f600'",
    19: "day = date '2026-02-28'",
    20: "day < date '1970-01-01' or day = date '9999-12-31'",
    21: "seen = timestamp '2026-02-28 12:30:00.000001Z'",
    22: "seen = timestamp '2026-02-28 13:30:00.000001+01:00'",
    23: "seen < timestamp '1970-01-01 00:00:00Z'",
    24: "local = timestamp '2026-02-28 12:30:00.000001Z'",
    25: "local < timestamp '0001-01-01 00:00:01Z' or local > timestamp '9999-12-31 23:00:00Z'",
    26: "nothing is null and exists whole",
    27: "place.city = 'Bonn' and place.at.zone = 7",
    28: "place.city = 'Ulm' and place.at.zone is null",
    29: "place.at.zone = 8 and place.at.name is null",
    30: "absent is null and real = 0.1",
    31: "absent = 1",
    32: "whole is null and place.city is null",
    33: "day = timestamp '2026-02-28 00:00:00Z'",
    34: "text = 1",
    35: "true",
}
TYPED_MATCHES = {
    1: [1, 3, 4, 5, 9, 10, 13, 15, 19, 21, 22, 24, 26, 27, 30, 35],
    2: [2, 6, 11, 14, 16, 18, 20, 23, 25, 26, 28, 35],
    3: [3, 4, 7, 9, 12, 17, 20, 25, 26, 29, 35],
    4: [32, 35],
}
