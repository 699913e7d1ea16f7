"""A bulk load of hostile subscriptions takes the good ones and tells of every other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken import Engine
from harken.compiler.bulk import SMALLEST_BULK
from harken.errors import BulkLoadError
from tests.cli.running import run
from tests.hostile.recipes import cases, promptly

# The largest are tried one by one; here they would only take long.
HOSTILE = [case for case in cases("expression") if len(str(case.make())) < 20_000]


@pytest.fixture(autouse=True)
def prompt(compiled_kernels: None) -> Iterator[None]:
    with promptly(60):  # all of them together
        yield


def rows() -> list[dict[str, object]]:
    """Good and hostile subscriptions in turn; the row of each hostile one is odd."""
    mixed: list[dict[str, object]] = []
    for at, case in enumerate(HOSTILE):
        mixed.append({"id": f"good {at}", "expression": f"x = {at}"})
        mixed.append({"id": f"bad {at}", "expression": case.make()})
    return mixed


def test_every_reject_comes_with_row_id_and_reason_and_the_rest_is_loaded() -> None:
    engine = Engine()
    report = engine.subscribe_many(rows(), on_error="collect")
    assert report.loaded == len(engine) == len(HOSTILE)
    assert [reject.row for reject in report.rejects] == [2 * at + 1 for at in range(len(HOSTILE))]
    for reject, (at, case) in zip(report.rejects, enumerate(HOSTILE), strict=True):
        assert reject.id == f"bad {at}"
        assert case.says in str(reject.error), case.name
        assert type(reject.error) is case.error_class, case.name
        assert "\n" not in reject.reason
    assert engine.match({"x": 7}) == ["good 7"]


def test_without_collecting_nothing_is_loaded_and_all_rejects_are_told() -> None:
    engine = Engine()
    with pytest.raises(BulkLoadError) as caught:
        engine.subscribe_many(rows())
    assert len(caught.value.rejects) == len(HOSTILE)
    assert (len(engine), engine.match({"x": 7})) == (0, [])


@pytest.mark.kernel
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar multiply")  # the shape hash wraps around
def test_texts_that_recur_are_refused_in_bulk_as_they_are_one_by_one() -> None:
    # Texts of one shape are compiled together, by kernels: the fast way must refuse what the slow way refuses.
    texts = [(case, case.make()) for case in HOSTILE]
    short = [(case, text) for case, text in texts if isinstance(text, str) and len(text) < 2_000]
    many = [*short * (1 + SMALLEST_BULK // len(short)), *[(None, f"x = {n}") for n in range(100)]]
    report = Engine().subscribe_many(enumerate(text for _, text in many), on_error="collect")  # type: ignore[arg-type]
    assert report.loaded == 100
    for reject, (case, _) in zip(report.rejects, many, strict=False):
        assert case is not None
        assert case.says in str(reject.error), case.name


def test_check_tells_of_every_hostile_expression_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    done = run("check", path)
    assert done.status == 1
    lines = done.out.splitlines()
    assert len(lines) == len(HOSTILE)
    assert [line.split(" ")[0] for line in lines] == [f"{path}:{2 * at + 2}" for at in range(len(HOSTILE))]
    assert "Traceback" not in done.out + done.err
