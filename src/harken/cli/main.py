"""The `harken` command: its verbs, and what becomes of errors.

Exit status: 0 when all went well, 1 when `check` found something bad, 2 for bad usage and bad input, 130 when
interrupted, 141 when the reader of the output went away.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from harken import HarkenError, __version__
from harken.cli.stream import stream
from harken.cli.terminal import complain, note

# A verb is a module of this package with a function of the same name.
VERBS = ("match", "check", "explain", "pipeline", "algorithms", "generate", "bench", "auction", "demo")

BAD_INPUT, INTERRUPTED, READER_GONE = 2, 130, 141


class _Verbs(TyperGroup):
    """A group whose errors come out as one line on standard error."""

    # The arguments are those of the base class, handed on.
    def main(self, args: Any = None, prog_name: Any = None, *, standalone_mode: bool = True, **more: Any) -> Any:  # type: ignore[override]
        """Run a verb; exit with its status unless told to return it."""
        try:
            status = super().main(args, prog_name, standalone_mode=False, **more)
        except typer.TyperException as error:
            status = _usage(error)
        if standalone_mode:
            sys.exit(status if isinstance(status, int) else 0)
        return status

    def invoke(self, ctx: Any) -> Any:  # the context's class is private to typer
        """Run the verb that was asked for."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except HarkenError as error:
            complain(str(error))
            raise typer.Exit(BAD_INPUT) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            # What is still buffered would be written, and fail, once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(READER_GONE) from error
        except OSError as error:
            if error.errno is None:
                raise  # not of the system
            where = "" if error.filename is None else f"{error.filename}: "
            complain(f"{where}{error.strerror}")
            raise typer.Exit(BAD_INPUT) from error
        return result


def _usage(error: typer.TyperException) -> int:
    """Say what is wrong with the arguments."""
    complain(error.format_message())
    context = getattr(error, "ctx", None)
    if context is not None:
        note(f"Try '{context.command_path} --help'.")
    return error.exit_code


app = typer.Typer(
    cls=_Verbs,
    help="Content-based publish/subscribe: which standing conditions does each event satisfy?",
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"harken {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(BAD_INPUT)


for _verb in VERBS:
    app.command()(getattr(import_module(f"harken.cli.{_verb}"), _verb))
app.add_typer(stream)


def main() -> None:
    """The entry point."""
    for output in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its code, not a crash.
        if output is not None:  # it may have been closed
            output.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # text files, both
    app()
