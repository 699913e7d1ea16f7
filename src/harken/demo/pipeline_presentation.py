"""The large marketplace on a terminal: what matched whom, how fast, and how fast a join would have been."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harken.errors import JavaError, MissingExtraError

if TYPE_CHECKING:
    from harken.demo.pipeline import Market, Sizes

SEED = 2026
HEARD = 6


def show_pipeline(console: Console, sizes: Sizes | None = None, master: str = "local[*]") -> None:
    """Run the pipeline and the join, and show what came of it; one line if Spark cannot be had here.

    Takes a minute or so on two cores.
    """
    from harken.demo.pipeline import Market, Sizes
    from harken.spark.runtime.failures import retold

    chosen = sizes or Sizes()
    console.print(Rule(Text("The same on Spark, at scale", style="bold"), align="left", style="dim"))
    with tempfile.TemporaryDirectory(prefix="harken-demo-") as folder:
        market = Market(Path(folder), chosen, SEED)
        try:
            with retold():
                _run(console, market, master)
        except (MissingExtraError, JavaError) as error:
            console.print(Text(f"Left out, as Spark cannot be started: {error}", style="yellow"), soft_wrap=True)
            return
        _show_heard(console, market)
        console.print(_results(market))


def _run(console: Console, market: Market, master: str) -> None:
    from harken.spark.runtime.lifetime import temporary_session

    sizes = market.sizes
    with console.status("starting Spark") as status, temporary_session(master) as spark:
        console.print(
            f"{sizes.wishes:,} subscriptions and {sizes.offers:,} offers, "
            f"as Parquet; Spark on {spark.sparkContext.defaultParallelism} cores.\n",
            style="dim",
        )
        status.update("making up a market")
        market.generate()
        status.update(f"compiling and indexing {sizes.wishes:,} subscriptions, matching {sizes.offers:,} offers")
        market.match(spark)
        status.update(f"joining {sizes.sample:,} of the offers with the subscriptions in plain Spark SQL")
        market.join(spark)


def _show_heard(console: Console, market: Market) -> None:
    for heard in market.heard(HEARD):
        console.print(Text.assemble(heard.offer, (" → ", "dim"), (heard.owner, "green")))
        console.print(Padding(Text(f"because {heard.because}", style="dim"), (0, 0, 0, 4)))
    console.print(f"… and so on, {market.matches:,} times.\n", style="dim")


def _results(market: Market) -> Table:
    sizes, seconds = market.sizes, market.seconds
    pairs = market.same_pairs()
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="bold")
    table.add_row("compiling, indexing", f"{seconds['compile']:.1f} s, {seconds['index']:.1f} s")
    table.add_row("matching", f"{seconds['match']:.1f} s: {market.speed:,.0f} offers/s, Parquet in and out")
    table.add_row(
        "plain Spark SQL join",
        f"{market.join_speed:,.0f} offers/s, {sizes.sample:,} offers in {seconds['join']:.1f} s",
    )
    table.add_row(
        "Harken is faster by",
        f"{market.speed / market.join_speed:,.0f} times "
        f"({market.whole_speed / market.join_speed:,.0f} with compiling and indexing)",
    )
    same = Text(f"yes, all {pairs:,}") if pairs is not None else Text("NO: this is a fault in Harken", style="red")
    table.add_row("same pairs found", same)
    return table
