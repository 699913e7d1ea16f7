"""Fresh environments with the wheel in them, made by uv from the package index and its cache."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_PINNED = re.compile(r"^(?P<pin>[A-Za-z0-9._-]+==\S+(?: ; [^\\]+)?) \\$", re.MULTILINE)


def pythons() -> list[str]:
    """One Python of each version that Harken runs on, as far as they are installed."""
    found = subprocess.run(
        ["sh", str(ROOT / "scripts" / "find-python.sh"), "--all"], capture_output=True, text=True, check=True
    )
    return found.stdout.split()


def built_wheel(folder: Path) -> Path:
    """The wheel, built from this tree."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def constraints() -> str:
    """The versions of the lock. Hashes are left out: constraints that have them apply to all or nothing."""
    return "\n".join(_PINNED.findall((ROOT / "requirements.lock").read_text(encoding="utf-8"))) + "\n"


class Environment:
    """A new environment that has a wheel, with extras, and nothing else."""

    def __init__(self, folder: Path, wheel: Path, extras: str = "", python: str = sys.executable) -> None:
        self.folder = folder
        self._bin = folder / "environment" / "bin"
        self._kernels = folder / "kernels"
        pins = folder / "constraints.txt"
        pins.write_text(constraints(), encoding="utf-8")
        self._share_compiled_kernels()
        wanted = f"harken[{extras}] @ {wheel.as_uri()}" if extras else f"harken @ {wheel.as_uri()}"
        _uv("venv", "--quiet", "--python", python, str(self._bin.parent))
        _install("--python", str(self._bin / "python"), "--constraint", str(pins), wanted)

    def run(self, *command: str, said: bool = False) -> str:
        """Run a command of the environment in its folder: what it printed, with standard error if asked for."""
        outside = ("PYTHON", "VIRTUAL_ENV", "NUMBA_")
        plain = {name: value for name, value in os.environ.items() if not name.startswith(outside)}
        more = {
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "NUMBA_CACHE_DIR": str(self._kernels),
            "NO_COLOR": "1",
            "TERM": "dumb",
            "COLUMNS": "100",
            "PYTHONIOENCODING": "utf-8",
        }
        done = subprocess.run(
            [str(self._bin / command[0]), *command[1:]],
            cwd=self.folder,
            env=plain | more,
            capture_output=True,
            encoding="utf-8",
            timeout=1800,
            check=False,
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done.stdout + (done.stderr if said else "")

    def run_script(self, code: str) -> None:
        """Run a program, whose assertions count."""
        (self.folder / "script.py").write_text(code, encoding="utf-8")
        self.run("python", "script.py")

    def run_doctest(self, text: str) -> None:
        """Compare what a session shows with what happens."""
        (self.folder / "session.txt").write_text(text, encoding="utf-8")
        self.run("python", "-m", "doctest", "-o", "ELLIPSIS", "-o", "NORMALIZE_WHITESPACE", "session.txt")

    def _share_compiled_kernels(self) -> None:
        """Let kernels compiled from this tree be found: their names do not say where it lies."""
        compiled = ROOT / "src" / "harken" / "__pycache__" / "kernels"
        compiled.mkdir(parents=True, exist_ok=True)
        self._kernels.mkdir()
        (self._kernels / "harken").symlink_to(compiled)


def _install(*arguments: str) -> None:
    """Install from uv's cache, which has the versions of the lock as a rule, or from the index.

    Unless it is told to stay offline, uv fetches and builds Spark's archive again for each environment where the
    index does not say for how long an answer holds.
    """
    try:
        _uv("pip", "install", "--quiet", "--offline", *arguments)
    except subprocess.CalledProcessError:
        _uv("pip", "install", "--quiet", *arguments)


def _uv(*arguments: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "uv.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
    done.check_returncode()
