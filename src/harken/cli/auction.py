"""`harken auction`: sellers, bidders and the best of them."""

from __future__ import annotations

from typing import Annotated

import typer

from harken.cli.terminal import screen


def auction(
    demo: Annotated[bool, typer.Option("--demo", help="Hold an auction of made-up offers and bids.")] = False,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Keep it in an empty database: sqlite:///file.db or postgresql://…"),
    ] = None,
) -> None:
    """Show an auction in which offers and bids are conditions, and the best bid changes as they come.

    Auctions of your own are held from Python: see harken.Auction and docs/symmetric.md.

    Example: harken auction --demo --url sqlite:///auction.db
    """
    if not demo:
        raise typer.BadParameter("pass --demo; auctions of your own are held from Python, with harken.Auction")
    from harken.demo import show_auction

    show_auction(screen(), url)
