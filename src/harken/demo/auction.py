"""An auction on a terminal: bids come in, the best changes, products are closed one after the other.

Piped into a file or another program it prints the same without animation.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from harken import Auction
from harken.demo.saleroom import SALES, Sale, Step, steps
from harken.symmetric.auction.order_book import BestChanged

SEED = 2026
STEPS = 120
SHOWN = 8
INTERVAL = 0.08


def show_auction(console: Console, url: str | None = None) -> None:
    """Hold an auction, in memory or in a database. Takes some ten seconds on a terminal, fewer elsewhere."""
    console.print(_welcome(url))
    with Auction(url, best="price desc") as auction:
        board = _Board()
        for sale in SALES:
            auction.offer(sale.seller, sale.product, sale.conditions)
        pace = INTERVAL if console.is_terminal else 0.0
        with Live(console=console, refresh_per_second=15) if pace else nullcontext() as live:
            for step in steps(STEPS, SEED):
                due = time.perf_counter() + pace
                _do(auction, step)
                board.take(step, auction.cycle())
                if live is not None:
                    live.update(board.render())
                    time.sleep(max(0.0, due - time.perf_counter()))
        if not pace:
            console.print(board.render())
        _close(console, auction, board)


def _welcome(url: str | None) -> RenderableType:
    said = Text.assemble(
        ("An auction", "bold cyan"),
        " of constraints. Sellers say what they would take, bidders what they would give;\n",
        "they meet where both allow it, and the highest price that both allow leads; of equals, the earlier.\n",
        (f"Kept {'in memory' if url is None else 'in a database, every step a transaction'}.", "dim"),
    )
    return Panel(said, border_style="cyan")


def _do(auction: Auction, step: Step) -> None:
    if step.what == "bid":
        auction.bid(step.bidder, step.product, step.conditions)
    else:
        auction.withdraw("bid", step.bidder)


@dataclass(slots=True)
class _Board:
    """What is shown: the offers with who leads, and what happened last."""

    said: dict[str, str] = field(default_factory=dict)
    leads: dict[str, str | None] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)
    news: list[Text] = field(default_factory=list)
    bids: int = 0

    def take(self, step: Step, changes: list[BestChanged]) -> None:
        """Note a step and what it led to."""
        if step.what == "bid":
            self.bids += 1
            self.said[step.bidder] = step.conditions
        for change in changes:
            self.leads[change.offer] = change.now
            self.changes[change.offer] += 1
            self.news = [*self.news, self._told(step, change)][-SHOWN:]

    def _told(self, step: Step, change: BestChanged) -> Text:
        if change.now is None:
            return Text(
                f"{change.before} withdraws; {change.offer} has nobody for {change.product}", style="yellow"
            )
        reason = "withdraws" if step.what == "withdraw" else "is outbid"
        before = f"; {change.before} {reason}" if change.before else ""
        return Text.assemble((change.now, "green"), f" leads for {change.product} of {change.offer}{before}")

    def render(self) -> RenderableType:
        """The board as it stands."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
        table.add_column("offer", no_wrap=True, ratio=5)
        table.add_column("best bid", no_wrap=True, ratio=4)
        table.add_column("changes", justify="right", no_wrap=True)
        for sale in SALES:
            table.add_row(_offer(sale), self._best(sale), str(self.changes[sale.seller]))
        count = Text(f"{self.bids} bids, {sum(self.changes.values())} times another led\n", style="dim")
        return Group(table, count, *self.news, Text())

    def _best(self, sale: Sale) -> Text:
        bidder = self.leads.get(sale.seller)
        if bidder is None:
            return Text("nobody yet", style="dim")
        return Text.assemble((bidder, "green"), f"  {self.said[bidder]}")


def _offer(sale: Sale) -> Text:
    return Text.assemble((f"{sale.product} ", "bold"), f"{sale.seller}: ", (sale.conditions, "dim"))


def _close(console: Console, auction: Auction, board: _Board) -> None:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    table.add_column(style="green")
    table.add_column(style="dim")
    for product in dict.fromkeys(sale.product for sale in SALES):
        for seller, winner in auction.close(product).items():
            said = "" if winner is None else board.said[winner]
            table.add_row(product, f"{seller} sells to", winner or "nobody", said)
    told: list[BestChanged] = []
    auction.deliver(told.append)
    console.print(table)
    console.print(f"{len(told)} notices of the best having changed were delivered.", style="dim")
