"""Runs uv, which installs in half the time, with what pip was told: which index to ask, and whom to trust.

uv comes from the lock, by pip, if it is not installed beside this Python yet. Arguments are those of uv.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"
UV = Path(sys.executable).with_name("uv")

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]

NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
"""Settings of pip, and what uv calls them."""


def settings() -> dict[str, str]:
    """What pip was told, for uv, which does not read what pip reads."""
    told = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^\S*\.([a-z-]+)='(.*)'$", told, re.MULTILINE)
    return {NAMES[name]: value for name, value in lines if name in NAMES and NAMES[name] not in os.environ}


def install_uv() -> None:
    """Have the uv of the lock, and nothing else."""
    (pinned,) = re.findall(r"^uv==(?:.*\\\n)*.*\n", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder, "uv.lock")
        alone.write_text(pinned, encoding="utf-8")
        subprocess.run(
            [*PIP, "install", "--quiet", "--no-compile", "--require-hashes", "--requirement", str(alone)],
            check=True,
        )


if __name__ == "__main__":
    if not UV.exists():
        install_uv()
    os.execve(UV, [str(UV), *sys.argv[1:]], {**os.environ, **settings()})
