from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    path = tmp_path / "subscriptions.csv"
    path.write_text(
        "id,expression,owner,valid_from,valid_until\n"
        "ann,item = 'camera' AND price < 300,Ann,,\n"
        "bob,price BETWEEN 100 AND 500,Bob,,\n"
        "old,price > 0,Olga,2020-01-01,2021-01-01\n"
    )
    return path


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text(
        '{"id": "e1", "item": "camera", "price": 199}\n'
        '{"id": "e2", "item": "lens", "price": 300}\n'
        '{"id": "e3", "item": "tripod"}\n'
    )
    return path


@pytest.fixture
def bad_subscriptions(tmp_path: Path) -> Path:
    path = tmp_path / "bad.jsonl"
    path.write_text(
        '{"id": 1, "expression": "x = 1"}\n'
        '{"id": 2, "expression": "x =\\n 1 AND y ="}\n'
        "\n"
        "not json\n"
        '{"id": 1, "expression": "x = 2"}\n'
        '{"id": 4, "expression": "x < 1 AND x > 2"}\n'
        '{"id": 5, "expression": "x IS NULL OR x IS NOT NULL"}\n'
    )
    return path
