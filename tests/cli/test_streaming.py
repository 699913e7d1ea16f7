"""`harken match -e -`: matches are there while the input still comes, and no end of a run is a crash."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE = 120
"""Seconds after which an answer counts as none."""


@contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "harken", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as process:
        try:
            yield process
        finally:
            process.kill()


def answer(process: subprocess.Popen[bytes]) -> bytes:
    """The next line that is printed; nothing if none comes."""
    assert process.stdout is not None
    waiting = select.poll()
    waiting.register(process.stdout, select.POLLIN)
    return process.stdout.readline() if waiting.poll(1_000 * PATIENCE) else b""


@pytest.mark.parametrize(
    ("options", "header", "lines"),
    [
        ([], b"", [b'{"id": "a", "price": 150}\n', b'{"id": "b", "price": 151}\n']),
        (["--format", "csv"], b"id,price\n", [b"a,150\n", b"b,151\n"]),
        (["--format", "json"], b"\n", [b'{"id": "a", "price": 150}\n', b'{"id": "b", "price": 151}\n']),
    ],
)
def test_the_matches_of_an_event_are_printed_before_the_next_one_comes(
    subscriptions: Path, options: list[str], header: bytes, lines: list[bytes]
) -> None:
    with running("match", "-s", subscriptions, "-e", "-", *options) as process:
        assert process.stdin is not None
        process.stdin.write(header)
        for name, line in zip(("a", "b"), lines, strict=True):
            process.stdin.write(line[:5])  # half a line is no event yet
            process.stdin.write(line[5:])
            assert answer(process) == f'{{"event": "{name}", "subscription": "bob"}}\n'.encode()
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert b"2 events, 2 matches" in process.stderr.read()


def test_plenty_of_input_is_matched_in_large_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harken.files import read_events

    read, write = os.pipe()
    lines = b'{"price": 150}\n' * 40_000

    def fill() -> None:
        with os.fdopen(write, "wb") as file:
            file.write(lines)

    writer = threading.Thread(target=fill)
    with os.fdopen(read, "rb") as file:
        monkeypatch.setattr(sys, "stdin", type("Input", (), {"buffer": file}))
        writer.start()
        sizes = [len(chunk) for chunk in read_events("-")]
        writer.join()
    assert sum(sizes) == 40_000
    assert max(sizes) > 1_000


@pytest.mark.parametrize("name", ["events.csv", "events.jsonl"])
def test_an_error_ends_the_run_though_more_input_may_come(subscriptions: Path, tmp_path: Path, name: str) -> None:
    """A reader of its own thread would wait for that input while the interpreter ends."""
    fifo = tmp_path / name
    os.mkfifo(fifo)
    bad = b"price,price\n1,2\n" if name.endswith("csv") else b"broken\n"
    with running("match", "-s", subscriptions, "-e", fifo) as process:
        with open(fifo, "wb", buffering=0) as file:
            file.write(bad)
            assert process.wait(PATIENCE) == 2
        assert process.stderr is not None
        assert process.stderr.read().count(b"\n") == 1


@pytest.mark.parametrize("name", ["events.csv", "events.jsonl"])
def test_an_interrupt_ends_the_run_though_more_input_may_come(
    subscriptions: Path, tmp_path: Path, name: str
) -> None:
    fifo = tmp_path / name
    os.mkfifo(fifo)
    good = b"id,price\n7,150\n" if name.endswith("csv") else b'{"id": 7, "price": 150}\n'
    with running("match", "-s", subscriptions, "-e", fifo) as process:
        with open(fifo, "wb", buffering=0) as file:
            file.write(good)
            assert answer(process) == b'{"event": 7, "subscription": "bob"}\n'
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_reader_of_csv_matches_that_goes_away_is_no_trouble(subscriptions: Path, tmp_path: Path) -> None:
    events = tmp_path / "many.csv"
    events.write_text("price\n" + "200\n" * 60_000)
    with running("match", "-s", subscriptions, "-e", events) as process:
        assert process.stdout is not None
        assert answer(process) != b""
        process.stdout.close()
        assert process.wait(PATIENCE) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_stream_is_an_error_and_no_crash(subscriptions: Path, closed: str) -> None:
    command = f"'{sys.executable}' -m harken match -s '{subscriptions}' -e - {closed}"
    done = subprocess.run(["bash", "-c", command], input=b"", capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"is closed" in done.stderr
