"""What is said of extras and of the lock, beside the tests that install them (`tests/installs`)."""

from __future__ import annotations

import tomllib

from tests.installs.environments import ROOT, constraints

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
TRIED = {"spark", "connect", "objects", "hdfs", "database", "postgres", "bench"}


def test_every_extra_is_tried_and_part_of_all() -> None:
    assert set(EXTRAS) == TRIED | {"all", "dev"}
    (everything,) = EXTRAS["all"]
    assert set(everything.removeprefix("harken[").removesuffix("]").split(",")) >= TRIED - {"database"}
    assert "harken[database]" in EXTRAS["postgres"]


def test_the_lock_gives_one_version_of_each_package_and_names_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    names = [pin.partition("==")[0] for pin in constraints().split("\n") if pin]
    assert len(names) == len(set(names)) > 50
    assert "://" not in lock
    assert "--index" not in lock
    assert lock.count("\n    --hash=sha256:") >= len(names)
