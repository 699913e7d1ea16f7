"""The wheel, with each documented extra alone in a fresh environment, runs that extra's documented example.

They take minutes and a package index: `make test-install` runs them, `make test` does not.
"""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT, blocks, commands
from tests.installs.environments import Environment, built_wheel, pythons
from tests.spark.servers.hdfs import hdfs_cluster
from tests.spark.servers.s3 import s3_server
from tests.symmetric.conftest import started_postgres

README, SPARK, SYMMETRIC = ROOT / "README.md", ROOT / "docs" / "spark.md", ROOT / "docs" / "symmetric.md"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


def script(page: Path, word: str, language: str = "python") -> str:
    """The one script on a page that has a word in it."""
    (found,) = (each.body for each in blocks(page, language) if word in each.body and ">>>" not in each.body)
    return found


def run_commands(page: Path, environment: Environment) -> None:
    """Run a page's commands on its files, and compare what they print."""
    for block in blocks(page):
        if block.file is not None:
            (environment.folder / block.file).write_text(block.body, encoding="utf-8")
    for block in blocks(page, "console"):
        for command, shown in commands(block):
            printed = environment.run(*command, said=True)
            options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(shown, printed, options), printed


@pytest.mark.install
@pytest.mark.parametrize("python", pythons())
def test_harken_alone_runs_the_readme_on_every_python(python: str, wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path, wheel, python=python)
    place = environment.run("python", "-c", "import harken; print(harken.__file__)")
    assert place.startswith(str(tmp_path))
    environment.run_doctest("\n".join(block.body for block in blocks(README, "python") if ">>>" in block.body))
    run_commands(README, environment)


@pytest.mark.install
def test_the_spark_extra_runs_the_readmes_match(wheel: Path, tmp_path: Path) -> None:
    Environment(tmp_path, wheel, "spark").run_script(script(README, "local_session"))


@pytest.mark.install
@pytest.mark.long
def test_the_connect_extra_matches_through_a_server(wheel: Path, tmp_path: Path) -> None:
    Environment(tmp_path, wheel, "connect").run_script(script(SPARK, ".remote(", "py"))


@pytest.mark.install
@pytest.mark.long
def test_the_objects_extra_keeps_subscriptions_in_an_object_store(wheel: Path, tmp_path: Path) -> None:
    with s3_server() as s3:
        known = {
            "AWS_ENDPOINT_URL": s3.endpoint,
            "AWS_ACCESS_KEY_ID": s3.options["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": s3.options["secret_access_key"],
            "AWS_REGION": s3.options["region"],
        }
        code = script(SPARK, "s3a://harken/market", "py")
        Environment(tmp_path, wheel, "objects").run_script(f"import os\nos.environ.update({known!r})\n{code}")


@pytest.mark.install
@pytest.mark.long
def test_the_hdfs_extra_keeps_subscriptions_on_hdfs(wheel: Path, tmp_path: Path) -> None:
    with hdfs_cluster() as hdfs:
        code = script(SPARK, "s3a://harken/market", "py").replace("s3a://harken", hdfs.address)
        Environment(tmp_path, wheel, "hdfs").run_script(code)


@pytest.mark.install
def test_the_database_extra_matches_on_sqlite(wheel: Path, tmp_path: Path) -> None:
    code = script(SYMMETRIC, "market.db")
    Environment(tmp_path, wheel, "database").run_script(f"from harken import SymmetricEngine\n{code}")


@pytest.mark.install
def test_the_postgres_extra_matches_on_postgresql(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path, wheel, "postgres")
    with started_postgres() as server:
        code = script(SYMMETRIC, "market.db").replace("sqlite:///market.db", server.get_uri())
        environment.run_script(f"from harken import SymmetricEngine\n{code}")


@pytest.mark.install
@pytest.mark.long
def test_the_bench_extra_measures_and_draws_a_plot(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path, wheel, "bench")
    environment.run("harken", "bench", "single-event", "--repeats", "1", "--out", "results")
    (report,) = (tmp_path / "results").glob("*.json")
    assert json.loads(report.read_text(encoding="utf-8"))["experiment"] == "single-event"
    assert list((tmp_path / "results").glob("*.png"))
