"""The command as a whole: help, version, errors, pipes and interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import harken
from harken.cli.main import VERBS
from harken.cli.terminal import progress
from tests.cli.running import run, run_apart


def test_the_version_is_told() -> None:
    assert run("--version").out == f"harken {harken.__version__}\n"


def test_help_lists_every_verb() -> None:
    done = run("--help")
    assert done.status == 0
    for verb in VERBS:
        assert f" {verb} " in done.out


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_an_example(verb: str) -> None:
    done = run(verb, "--help")
    assert done.status == 0
    assert f"harken {verb}" in done.out.partition("Example")[2]


def test_without_a_verb_the_help_is_shown_as_bad_usage() -> None:
    done = run()
    assert done.status == 2
    assert "match" in done.out + done.err


def test_an_unknown_verb_is_bad_usage() -> None:
    done = run("mtach")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: No such command 'mtach'.")


def test_a_missing_option_is_bad_usage() -> None:
    done = run("match")
    assert done.status == 2
    assert done.err == "error: Missing option '--subscriptions' / '-s'.\nTry 'harken match --help'.\n"


def test_algorithms_are_listed_for_people_and_for_programs() -> None:
    assert "reference" in run("algorithms").out
    assert json.loads(run("algorithms", "--json").out) == harken.algorithms()


def test_help_loads_no_kernel_and_no_plots() -> None:
    code = (
        "import sys; from harken.cli.main import app; "
        "app(['--help'], standalone_mode=False); "
        "sys.exit(any(name in sys.modules for name in ('numba', 'matplotlib', 'pyspark', 'pyarrow.csv')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300, check=False)
    assert done.returncode == 0


def test_an_error_reaches_the_user_without_a_traceback(tmp_path: Path) -> None:
    done = run_apart("check", "absent.csv", folder=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert done.err == "error: absent.csv: there is no such file or folder\n"


@pytest.mark.parametrize(
    "arguments", [("generate", "w0", "--events", 1, "--subscriptions", 1), ("bench", "yardstick")]
)
def test_an_output_that_is_in_the_way_is_an_error_without_a_traceback(
    subscriptions: Path, arguments: tuple[object, ...]
) -> None:
    done = run(*arguments, "--out", subscriptions)
    assert (done.status, done.out, done.err) == (2, "", f"error: {subscriptions}: File exists\n")


def test_a_whole_run_in_a_process_of_its_own(subscriptions: Path, events: Path, tmp_path: Path) -> None:
    done = run_apart("match", "-s", subscriptions.name, "-e", "-", given=events.read_text(), folder=tmp_path)
    assert done.status == 0
    assert done.out.splitlines()[0] == '{"event": "e1", "subscription": "ann"}'
    assert done.err.count("\n") == 1  # the summary, and no progress bar


def test_a_reader_that_goes_away_is_no_trouble(subscriptions: Path, tmp_path: Path) -> None:
    events = tmp_path / "many.jsonl"
    events.write_text('{"price": 200}\n' * 60_000)
    match = f"'{sys.executable}' -m harken match -s '{subscriptions}' -e '{events}'"
    command = f"{match} | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (141, 1, "")


HEED_INTERRUPTS = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
"""For a process that is to be interrupted: those of a shell's background ignore it from their birth."""


@pytest.mark.parametrize("module", ["typer", "harken.cli.main", "harken.cli.terminal"])
def test_an_interrupt_while_modules_are_imported_is_no_error(subscriptions: Path, module: str) -> None:
    # It waits for events that never come: an interrupt that is late still comes in time.
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "harken", "match", "-s", subscriptions, "-e", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=HEED_INTERRUPTS,
    )
    assert process.stderr is not None
    for line in process.stderr:  # Python tells of each module when it is there
        if line.rsplit("|")[-1].strip() == module:
            process.send_signal(signal.SIGINT)
            break
    said = process.stderr.read()
    process.communicate()
    assert (process.returncode, "Traceback" in said) == (130, False)


def test_an_interrupt_while_a_class_is_made_of_text_ends_with_130(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text('exec("raise KeyboardInterrupt")')  # where dataclasses make their methods
    done = subprocess.run(
        [sys.executable, "-m", "harken"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, b"")


def test_an_interrupted_run_ends_with_130_and_leaves_no_output(subscriptions: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "matches.jsonl"
    output.parent.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "harken", "match", "-s", subscriptions, "-e", "-", "-o", output],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=HEED_INTERRUPTS,
    )
    assert process.stdin is not None
    process.stdin.write(b'{"price": 200}\n' * 20_000)
    process.stdin.flush()
    deadline = time.monotonic() + 200
    while not list(output.parent.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in said, list(output.parent.iterdir())) == (130, False, [])


def test_progress_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("working", 10) as done:
        done(5)
    assert capsys.readouterr() == ("", "")


def test_progress_is_shown_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress("working", 10) as done:
        done(5)
    out, err = capsys.readouterr()
    assert (out, "working" in err, "5/10" in err) == ("", True, True)


def test_a_terminal_without_unicode_gets_codes_instead_of_a_crash(subscriptions: Path) -> None:
    command = [sys.executable, "-m", "harken", "explain", "-s", subscriptions, "--id", "ann", "--event", "{}"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=plain, capture_output=True, timeout=300, check=False)
    assert (done.returncode, b"unknown" in done.stdout) == (0, True)
