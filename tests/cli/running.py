"""Running the command line: inside this process, or as users do."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from harken.cli.main import app


@dataclass(frozen=True)
class Outcome:
    """What a run said and how it ended."""

    status: int
    out: str
    err: str


def run(*arguments: object, given: bytes | str | None = None) -> Outcome:
    """Run a verb in this process. An exception that is not handled is raised here."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], input=given, prog_name="harken")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def run_apart(*arguments: object, given: str | None = None, folder: Path | None = None) -> Outcome:
    """Run a verb in a process of its own."""
    command = [sys.executable, "-m", "harken", *(str(each) for each in arguments)]
    done = subprocess.run(
        command, input=given, cwd=folder, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
