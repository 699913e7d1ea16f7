"""Run a command for as long as somebody holds this program's input open: `python guard_program.py COMMAND ...`.

A test that is killed cannot end its servers. But its end of the pipe is closed then, whatever happened.
"""

from __future__ import annotations

import subprocess
import sys
import threading


def main() -> int:
    """Start the command, and wait until it ends or is ended."""
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_kill_after_input, args=(child,), daemon=True).start()
    return child.wait()


def _kill_after_input(child: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    child.kill()


if __name__ == "__main__":
    sys.exit(main())
