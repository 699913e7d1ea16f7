"""`harken bench`: run experiments and write what they found."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table


class ScaleName(StrEnum):
    """How large to run."""

    SMALL = "small"
    FULL = "full"


class _Bars:
    """Progress of experiments as bars on a terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    @contextmanager
    def step(self, label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A bar for one piece of work."""
        task = self._progress.add_task(label, total=total)
        try:
            yield lambda done: self._progress.update(task, completed=done)
        finally:
            self._progress.remove_task(task)


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments to run, or families of them; see --list.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the experiments and stop.")] = False,
    scale: Annotated[
        ScaleName, typer.Option(help="small: under a minute; full: as in the papers.")
    ] = ScaleName.SMALL,
    repeats: Annotated[int, typer.Option(min=1, help="How often each contender is measured.")] = 3,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="How long those go on of which --list says --minutes; others ignore it."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for JSON, Markdown and plots.")] = Path("bench-results"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Measure, side by side in one run, with repeats.

    Examples: harken bench compile --scale full --repeats 5; harken bench spark; harken bench soak --minutes 60
    """
    from harken.bench import experiments, report
    from harken.bench.measuring import Bench

    # What is measured on one core is, whatever pays for large batches; who wants more threads says how many.
    os.environ.setdefault("HARKEN_THREADS", "1")
    console, errors = Console(), Console(stderr=True)
    if list_all or not names:
        table = Table("experiment", "what it shows")
        for name, summary in experiments.experiments().items():
            table.add_row(name, summary)
        console.print(table)
        return
    runs = {each: experiments.load(each) for name in names for each in experiments.named(name)}
    out.mkdir(parents=True, exist_ok=True)  # before an hour of measuring, not after it
    if not report.can_draw():
        errors.print(
            "no plots are drawn: these need the extra 'bench'; pip install 'harken[bench]'", soft_wrap=True
        )
    for name, run in runs.items():
        with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
            settings = Bench(scale.value, repeats, progress=_Bars(progress), minutes=minutes)
            result = run(settings)
        said = report.to_dict(name, settings, result)
        written = report.write(out, name, said, result)
        if as_json:
            console.print_json(json.dumps(said))
        else:
            report.show(console, name, said, result)
            errors.print("written: " + ", ".join(map(str, written)), style="dim", soft_wrap=True)
