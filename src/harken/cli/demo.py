"""`harken demo`: see Harken at work."""

from __future__ import annotations

from typing import Annotated

import typer

from harken.cli.terminal import screen


def demo(
    without_spark: Annotated[
        bool, typer.Option("--without-spark", help="Leave out the large marketplace, which takes a minute.")
    ] = False,
) -> None:
    """Show Harken at work: on a small marketplace, in a few seconds, and on a large one with Spark.

    Example: harken demo --without-spark
    """
    from harken.demo import show, show_pipeline

    console = screen()
    show(console)
    if not without_spark:
        console.print()
        show_pipeline(console)
