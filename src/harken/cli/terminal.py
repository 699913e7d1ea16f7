"""What the verbs share on a terminal: errors, rejects, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console


def complain(message: str) -> None:
    """An error, as all errors look."""
    note(f"error: {message}")


def note(message: str) -> None:
    """Something worth knowing that is not part of the output."""
    typer.echo(harmless(message), err=True)


def harmless(text: str) -> str:
    """The text with what would steer a terminal made visible: messages quote what strangers wrote."""
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def screen() -> Console:
    """Standard output for text with colours, which are left out where it is no terminal."""
    from rich.console import Console

    class Screen(Console):
        """Leaves it to the command what to do when the reader goes away; rich would end it by itself."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Screen(highlight=False)


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar on standard error that is told how much has been done; nothing where nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)
