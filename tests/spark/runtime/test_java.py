"""A Java that Spark can run on is found, installed or asked for, and a session starts on it.

The Javas here are shell scripts that say a version, and so are the programs that would install one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from harken.errors import JavaError, MissingExtraError
from harken.spark.runtime.java import PLACES, examine, java_home
from harken.spark.runtime.session import cores_of, local_session, require_java

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "ensure-java.sh"
SHELL = str(shutil.which("sh"))
SLEEP = str(shutil.which("sleep"))
TOOLS = {name: str(shutil.which(name)) for name in ("cp", "env", "tail")}


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, on a machine without Java. A session that runs already is not affected."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("harken.spark.runtime.session.java_home", lambda: java_home(()))
    return folder


def program(path: Path, *lines: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([f"#!{SHELL}", *lines, ""]), encoding="utf-8")
    path.chmod(0o755)
    return path


def java(path: Path, version: str, *lines: str) -> Path:
    """A java that says it is of a version, and whatever else it is told to."""
    return program(path, f"""echo 'openjdk version "{version}" 2025-04-15' >&2""", *lines)


# Finding one


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('java version "1.8.0_392"', 8),
        ('openjdk version "11.0.21" 2023-10-17', 11),
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.15" 2025-04-15', 17),
    ],
)
def test_the_version_is_read_from_what_java_says(tmp_path: Path, said: str, version: int) -> None:
    runtime = examine(program(tmp_path / "jdk" / "bin" / "java", f"echo '{said}' >&2"), patience=30)
    assert runtime.version == version
    assert runtime.home == tmp_path / "jdk"


def test_java_is_found_by_java_home_before_the_path(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path / "jdk-21" / "bin" / "java", "21.0.3")
    java(path / "java", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk-21"))
    assert java_home(()) == tmp_path / "jdk-21"


def test_a_link_on_the_path_leads_to_the_home_it_points_into(tmp_path: Path, path: Path) -> None:
    (path / "java").symlink_to(java(tmp_path / "jdk-17" / "bin" / "java", "17.0.15"))
    assert java_home(()) == tmp_path / "jdk-17"


def test_a_script_on_the_path_that_picks_a_java_leads_to_the_home_that_java_tells(
    tmp_path: Path, path: Path
) -> None:
    java(path / "java", "17.0.15", f"echo '    java.home = {tmp_path / 'jdk-17'}' >&2")
    assert java_home(()) == tmp_path / "jdk-17"


def test_a_java_home_that_is_too_old_gives_way_to_the_path(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path / "jdk-8" / "bin" / "java", "1.8.0_392")
    (path / "java").symlink_to(java(tmp_path / "jdk-17" / "bin" / "java", "17.0.15"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk-8"))
    assert java_home(()) == tmp_path / "jdk-17"


def test_the_usual_places_are_searched_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path / "jvm" / "a-11" / "bin" / "java", "11.0.21")
    java(tmp_path / "jvm" / "b-17" / "bin" / "java", "17.0.15")
    (tmp_path / "jvm" / "0-empty").mkdir()
    assert java_home([f"{tmp_path}/jvm/*"]) == tmp_path / "jvm" / "b-17"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert java_home(["~/jvm/*"]) == tmp_path / "jvm" / "b-17"


def test_without_any_java_the_error_says_what_to_install() -> None:
    with pytest.raises(JavaError) as caught:
        java_home(())
    assert str(caught.value) == (
        "Spark needs Java 17 or newer, but there is none; "
        "install openjdk-17-jre-headless or any newer Java, or set JAVA_HOME to the home of one"
    )


def test_the_error_names_every_java_that_will_not_do(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    java(path / "java", "1.8.0_392")
    java(tmp_path / "jvm" / "11" / "bin" / "java", "11.0.21")
    with pytest.raises(JavaError) as caught:
        java_home([f"{tmp_path}/jvm/*"])
    assert caught.value.message == (
        f"Spark needs Java 17 or newer, but {tmp_path}/gone/bin/java cannot be run (No such file or directory); "
        f"{path}/java is Java 8; {tmp_path}/jvm/11/bin/java is Java 11"
    )


def test_a_java_that_says_no_version_is_passed_over(tmp_path: Path, path: Path) -> None:
    program(path / "java", "echo 'Unable to locate a Java Runtime.' >&2", "exit 1")
    with pytest.raises(JavaError, match="path/java does not say its version"):
        java_home(())
    java(tmp_path / "jdk" / "bin" / "java", "17.0.15")
    assert java_home([str(tmp_path / "jdk")]) == tmp_path / "jdk"


def test_a_java_that_hangs_is_given_up(path: Path) -> None:
    program(path / "java", f"exec {SLEEP} 600")
    with pytest.raises(JavaError, match=r"path/java did not answer in 0\.2 s"):
        java_home((), patience=0.2)


# Before a session


def test_requiring_java_tells_spark_where_it_was_found(tmp_path: Path, path: Path) -> None:
    (path / "java").symlink_to(java(tmp_path / "jdk-17" / "bin" / "java", "17.0.15"))
    require_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk-17")


def test_requiring_java_leaves_a_good_java_home_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path / "jdk-17" / "bin" / "java", "17.0.15")
    (tmp_path / "current").symlink_to(tmp_path / "jdk-17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "current"))
    require_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "current")


def test_a_session_without_java_fails_before_spark_is_started() -> None:
    with pytest.raises(JavaError, match="Spark needs Java 17"):
        local_session()


def test_a_session_without_pyspark_names_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r"harken\[spark\]"):
        local_session()


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local[*]", os.cpu_count()),
        ("local[*, 4]", os.cpu_count()),
        ("local-cluster[2, 3, 1024]", 6),
        ("spark://local:7077", None),
        ("yarn", None),
    ],
)
def test_the_cores_of_a_master_are_known_if_it_is_on_this_machine(master: str, cores: int | None) -> None:
    assert cores_of(master) == cores


# Setting up the project


def ensure_java(*homes: Path) -> subprocess.CompletedProcess[str]:
    """Run the script that `make` runs, looking for Java in these homes only."""
    command = [SHELL, str(SCRIPT), *(str(home) for home in homes or [Path("/nowhere")])]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def apt(path: Path, tmp_path: Path) -> Iterator[Path]:
    """A machine with an apt-get that installs Java 17, writing to the returned file what it was asked for."""
    for name, tool in TOOLS.items():
        (path / name).symlink_to(tool)
    calls = tmp_path / "calls"
    calls.touch()
    packaged = java(tmp_path / "packaged" / "java", "17.0.15")
    program(
        path / "apt-get",
        f'echo "$DEBIAN_FRONTEND $*" >> {calls}',
        f'case "$*" in *install*openjdk-17-jre-headless*) cp {packaged} {path}/java ;; esac',
    )
    program(path / "id", "echo 0")
    return calls


def test_set_up_is_content_with_a_java_that_is_there(tmp_path: Path, path: Path, apt: Path) -> None:
    home = java(tmp_path / "jdk-21" / "bin" / "java", "21").parent.parent
    java(path / "java", "11.0.21")
    finished = ensure_java(Path("/nowhere"), home)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
    assert apt.read_text() == ""


@pytest.mark.parametrize("found", ["1.8.0_392", "11.0.21", None])
def test_set_up_installs_java_as_root_where_there_is_none_or_an_old_one(
    path: Path, apt: Path, found: str | None
) -> None:
    if found:
        java(path / "java", found)
    finished = ensure_java()
    assert (finished.returncode, finished.stderr) == (0, "")
    update, install = apt.read_text().splitlines()
    assert update.endswith(" update")
    assert install.startswith("noninteractive ")
    assert install.endswith(" install --yes --no-install-recommends openjdk-17-jre-headless")


def test_set_up_installs_java_through_sudo_where_that_asks_for_no_password(path: Path, apt: Path) -> None:
    program(path / "id", "echo 1000")
    program(path / "sudo", f'echo "sudo $*" >> {apt}', "shift", '"$@"')
    assert ensure_java().returncode == 0
    assert "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get" in apt.read_text()


def test_set_up_installs_the_default_java_where_17_is_not_packaged(tmp_path: Path, path: Path, apt: Path) -> None:
    program(
        path / "apt-get",
        f'case "$*" in *default-jre-headless*) cp {tmp_path}/packaged/java {path}/java ;; *) exit 100 ;; esac',
    )
    assert ensure_java().returncode == 0


def stopped(finished: subprocess.CompletedProcess[str], why: str) -> bool:
    """Whether set-up failed with the one line that says what to install and why it could not be done."""
    advice = "install openjdk-17-jre-headless or any newer Java, or set JAVA_HOME"
    return finished.returncode == 1 and finished.stderr == f"Spark needs Java 17 or newer: {advice} ({why})\n"


def test_set_up_stops_with_one_line_where_it_may_not_install(path: Path, apt: Path) -> None:
    program(path / "id", "echo 1000")
    assert stopped(ensure_java(), "it takes root to do it for you")
    program(path / "sudo", "echo 'sudo: a password is required' >&2", "exit 1")
    assert stopped(ensure_java(), "it takes root to do it for you")
    assert apt.read_text() == ""


def test_set_up_stops_with_one_line_where_there_is_no_apt(path: Path) -> None:
    program(path / "java", "echo 17 bananas >&2")
    assert stopped(ensure_java(), "there is no apt-get to do it for you")


@pytest.mark.usefixtures("apt")
def test_set_up_stops_with_one_line_where_apt_fails_or_brings_an_old_java(path: Path) -> None:
    program(path / "apt-get", "echo 'W: no network' >&2", "echo 'E: no such package' >&2", "exit 100")
    assert stopped(ensure_java(), "apt-get could not: E: no such package")
    program(path / "apt-get")
    java(path / "java", "11.0.21")
    assert stopped(ensure_java(), "apt-get installed one that is too old")


def test_set_up_looks_in_the_same_places_as_harken() -> None:
    words = SCRIPT.read_text(encoding="utf-8").split()
    start = words.index("/usr/lib/jvm/*")
    assert [word for word in words[start:] if word != "\\"][: len(PLACES)] == list(PLACES)


# On Spark


def test_a_session_starts_and_runs_python_on_arrow_batches(spark: SparkSession) -> None:
    def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = [2 * number for number in batch.column("id").to_pylist()]
            interpreters = [sys.executable] * batch.num_rows
            yield pa.record_batch({"number": pa.array(numbers, pa.int64()), "interpreter": interpreters})

    rows = spark.range(4).mapInArrow(doubled, "number long, interpreter string").collect()
    assert sorted(row.number for row in rows) == [0, 2, 4, 6]
    assert {row.interpreter for row in rows} == {sys.executable}


def test_a_session_has_harkens_settings_and_those_it_was_given(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "50000"
    assert spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == "2147483647"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"
    assert spark.sparkContext.uiWebUrl is None


def test_a_session_logs_errors_only_and_has_the_memory_asked_for(spark: SparkSession) -> None:
    java_process = spark._jvm
    assert java_process is not None
    assert java_process.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString() == "ERROR"
    # Some collectors count their reserve out.
    assert 2**29 < java_process.java.lang.Runtime.getRuntime().maxMemory() <= 2**30
