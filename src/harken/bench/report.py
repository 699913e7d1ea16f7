"""Reports: a result as JSON for programs, Markdown for readers, a plot for those who would rather look."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table

from harken.bench.machine import machine
from harken.bench.measuring import Bench, Figure, Plot, Ratio, Result


def to_dict(name: str, bench: Bench, result: Result) -> dict[str, object]:
    """A result with all that is needed to understand it later."""
    return {
        "experiment": name,
        "title": result.title,
        "scale": bench.scale,
        "repeats": bench.repeats,
        "seed": bench.seed,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "conditions": dict(result.conditions),
        "figures": [figure.to_dict() for figure in result.figures],
        "ratios": [ratio.to_dict() for ratio in result.ratios],
        "plot": None if result.plot is None else asdict(result.plot),
        "paper": result.paper,
        "notes": result.notes,
    }


def write(folder: Path, name: str, report: dict[str, object], result: Result) -> list[Path]:
    """Write NAME.json, NAME.md and, if there is something to draw and it can be, NAME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.json", folder / f"{name}.md"]
    written[0].write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    picture = folder / f"{name}.png"
    plot = result.plot if can_draw() else None
    if plot is not None:
        draw(plot, result.title, picture)
        written.append(picture)
    written[1].write_text(markdown(report, result, picture if plot else None), encoding="utf-8")
    return written


def can_draw() -> bool:
    """Whether what draws plots is installed."""
    return find_spec("matplotlib") is not None


def markdown(report: dict[str, object], result: Result, picture: Path | None) -> str:
    """The result as a short page."""
    facts = report["machine"]
    assert isinstance(facts, dict)
    lines = [
        f"# {result.title}",
        "",
        f"`harken bench {report['experiment']} --scale {report['scale']}`, {report['repeats']} repeats, "
        f"commit {facts['commit'] or 'unknown'}; {facts['processor']}, {facts['cores']} cores, "
        f"{facts['memory_gib']} GiB, Python {facts['python']}.",
        "",
        *_bullets(result.conditions),
        *_figure_table(result),
        *_ratio_table(result),
    ]
    if result.paper:
        lines += ["**The paper:** " + result.paper, ""]
    if picture is not None:
        lines += [f"![{result.title}]({picture.name})", ""]
    lines += [f"- {note}" for note in result.notes]
    return "\n".join(lines).rstrip() + "\n"


def _bullets(conditions: object) -> list[str]:
    assert isinstance(conditions, dict)
    return [*(f"- {name}: {value}" for name, value in conditions.items()), ""]


def _figure_table(result: Result) -> list[str]:
    if not result.figures:
        return []
    rows = ["| figure | median | low | high | unit | target |", "|---|---:|---:|---:|---|---|"]
    for each in result.figures:
        low, high = short(min(each.samples)), short(max(each.samples))
        rows.append(f"| {each.name} | {short(each.median)} | {low} | {high} | {each.unit} | {_target(each)} |")
    return [*rows, ""]


def _ratio_table(result: Result) -> list[str]:
    if not result.ratios:
        return []
    rows = ["| ratio | median | low | high | verdict | target |", "|---|---:|---:|---:|---|---|"]
    for each in result.ratios:
        low, high = short(min(each.samples)), short(max(each.samples))
        rows.append(f"| {each.name} | {short(each.median)} | {low} | {high} | {each.verdict} | {_target(each)} |")
    return [*rows, ""]


def _target(measured: Figure | Ratio) -> str:
    if measured.target is None:
        return ""
    most = isinstance(measured, Figure) and measured.lower_is_better
    verdict = "reached" if measured.reached else "missed"
    return f"at {'most' if most else 'least'} {short(measured.target)}: {verdict}"


def short(number: float) -> str:
    """A number as people read it: three significant digits, thousands apart."""
    if number == 0 or abs(number) >= 1_000:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def show(console: Console, name: str, report: dict[str, object], result: Result) -> None:
    """Print the result as tables."""
    facts = report["machine"]
    assert isinstance(facts, dict)
    console.print(f"[bold]{name}[/bold]: {result.title}")
    console.print(
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gib']} GiB; Python {facts['python']}; "
        f"commit {facts['commit'] or 'unknown'}; scale {report['scale']}, {report['repeats']} repeats",
        style="dim",
    )
    table = Table("", "median", "low", "high", "", "target")
    for column in table.columns[1:4]:
        column.justify = "right"
    lines: list[Figure | Ratio] = [*result.figures, *result.ratios]
    for each in lines:
        numbers = (short(each.median), short(min(each.samples)), short(max(each.samples)))
        unit = each.unit if isinstance(each, Figure) else f"x, {each.verdict}"
        table.add_row(each.name, *numbers, unit, _target(each))
    console.print(table)
    for note in result.notes:
        console.print(f"  {note}", style="dim")


MARKERS = "o^sDvP*Xdp"
"""Of points above names, which often lie close together."""


def draw(plot: Plot, title: str, path: Path) -> None:
    """Draw curves into a PNG."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    few = len(plot.curves) <= 10
    above_names = any(isinstance(each, str) for curve in plot.curves for each in curve.x)
    figure, axes = pyplot.subplots(figsize=(8, 7 if above_names else 5 if few else 6), layout="constrained")
    axes.set_prop_cycle(color=mpl.colormaps["tab10"](range(10)) if few else mpl.colormaps["tab20"](range(20)))
    for at, curve in enumerate(plot.curves):
        if above_names:  # the first on top of all others
            marker = MARKERS[at % len(MARKERS)]
            axes.plot(curve.x, curve.y, marker, label=curve.label, fillstyle="none", zorder=-at)
        else:
            axes.plot(curve.x, curve.y, marker=".", label=curve.label)
    if above_names:
        pyplot.setp(axes.get_xticklabels(), rotation=30, ha="right")
    axes.set(xlabel=plot.x_label, ylabel=plot.y_label, title=textwrap.fill(title, 72))
    if plot.log_x:
        axes.set_xscale("log")
    axes.set_yscale("log") if plot.log_y else axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, fontsize="small")  # beside the curves, never on top of them
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
