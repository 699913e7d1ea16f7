"""The demonstration on a terminal: subscribers, a live stream of offers, a near miss, a mistake, a summary.

Piped into a file or another program it prints the same without animation.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from harken import Engine, Explanation, HarkenError
from harken.demo.marketplace import SCHEMA, WISHES, Offer, Wish, as_columns, offers, robots

SEED = 2026
ROBOTS = 3_000
STREAMED = 240
SHOWN = 12
INTERVAL = 0.03
MEASURED_SECONDS = 2.0
BATCH = 2_000
MISTAKE = "kind = 'camera' AND price =< 300"


def show(console: Console) -> None:
    """Run the whole demonstration. Takes some ten seconds on a terminal, fewer elsewhere."""
    console.print(_welcome())
    first_use = _warm_up()
    engine = _subscribe(console)
    stream = offers(STREAMED, SEED)
    _stream(console, engine, stream)
    _near_miss(console, engine, stream)
    _mistake(console, engine)
    batches = [offers(BATCH, SEED + 1 + at) for at in range(4)]
    _summary(
        console,
        engine,
        first_use,
        {
            "as dictionaries": _measure(engine, batches),
            "as columns": _measure(engine, [as_columns(batch) for batch in batches]),
        },
    )


def _welcome() -> RenderableType:
    said = Text.assemble(
        ("Harken", "bold cyan"),
        ": standing conditions on one side, things that happen on the other.\n",
        "A marketplace for cameras, flights and apartments. People said once what they wait for; ",
        "each offer that comes in goes at once to all who asked for it.",
    )
    return Panel(said, border_style="cyan")


def _heading(title: str) -> Rule:
    return Rule(Text(title, style="bold"), align="left", style="dim")


def _subscribe(console: Console) -> Engine:
    engine = Engine(schema=SCHEMA)
    start = time.perf_counter()
    wishes = [*WISHES, *robots(ROBOTS, SEED)]
    engine.subscribe_many({"id": wish.id, "expression": wish.expression, "owner": wish.person} for wish in wishes)
    seconds = time.perf_counter() - start
    people = len({wish.person for wish in WISHES})
    console.print(_heading("Subscriptions"))
    console.print(_wish_table(WISHES[: SHOWN // 2]))
    console.print(
        f"… {len(WISHES)} subscriptions of {people} people and {ROBOTS:,} of programs, in {seconds:.2f} s.\n",
        style="dim",
    )
    return engine


def _wish_table(wishes: tuple[Wish, ...]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="green", no_wrap=True)
    table.add_column(overflow="fold")
    for wish in wishes:
        table.add_row(wish.person, wish.expression)
    return table


@dataclass(slots=True)
class _Board:
    """What the live table shows: the latest offers somebody heard of, and the counts so far."""

    owners: dict[str, str]
    seen: int = 0
    matches: int = 0
    latest: list[tuple[Offer, list[str], int]] = field(default_factory=list)
    heard: Counter[str] = field(default_factory=Counter)

    def take(self, offer: Offer, ids: list[str]) -> None:
        """Count an offer and its matches; keep it if a person heard of it."""
        self.seen += 1
        self.matches += len(ids)
        people = sorted(self.owners[id] for id in ids if id in self.owners)
        self.heard.update(people)
        if people:
            self.latest = [*self.latest, (offer, people, len(ids) - len(people))][-SHOWN:]

    def render(self) -> RenderableType:
        """The board as it stands."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True)
        table.add_column("offer", no_wrap=True, ratio=5)
        table.add_column("price", justify="right", no_wrap=True, min_width=6)
        table.add_column("goes to", no_wrap=True, ratio=4)
        for offer, people, programs in self.latest:
            table.add_row(str(offer["title"]), f"€ {offer['price']:,.0f}", _audience(people, programs))
        most = ", ".join(f"{person} {count}" for person, count in self.heard.most_common(3))
        counts = f"{self.seen:,} offers, {self.matches:,} matches; heard most: {most}\n"
        return Group(table, Text(counts, style="dim"))


def _audience(people: list[str], programs: int) -> Text:
    text = Text(", ".join(people), style="green")
    if programs:
        text.append(f" + {programs} programs", style="dim")
    return text


def _stream(console: Console, engine: Engine, stream: list[Offer]) -> None:
    board = _Board({wish.id: wish.person for wish in WISHES})
    console.print(_heading("Offers come in"))
    if not console.is_terminal:
        for offer in stream:
            board.take(offer, _heard(engine, offer))
        console.print(board.render())
        return
    with Live(board.render(), console=console, refresh_per_second=15) as live:
        for offer in stream:
            due = time.perf_counter() + INTERVAL
            board.take(offer, _heard(engine, offer))
            live.update(board.render())
            time.sleep(max(0.0, due - time.perf_counter()))


def _heard(engine: Engine, offer: Offer) -> list[str]:
    return [str(id) for id in engine.match(offer)]


def _near_miss(console: Console, engine: Engine, stream: list[Offer]) -> None:
    console.print(_heading("Why not? A near miss, explained"))
    for offer in stream:
        for wish in WISHES:
            explanation = engine.explain(offer, wish.id)
            if _is_near_miss(explanation, offer):
                console.print(f"{offer['title']} at € {offer['price']:,.0f} did not go to {wish.person}:")
                console.print(_coloured(explanation), soft_wrap=True)
                return


def _is_near_miss(explanation: Explanation, offer: Offer) -> bool:
    """Whether all is as wished but the price, and that only by a tenth."""
    missed = [part.text for part in explanation.root.parts if part.truth is not True]
    if len(explanation.root.parts) < 4 or len(missed) != 1 or not missed[0].startswith("price <"):
        return False
    return float(str(offer["price"])) <= 1.1 * float(missed[0].split()[-1])


def _coloured(explanation: Explanation) -> Text:
    colours = {"✓": "green", "✗": "bold red", "?": "yellow"}
    lines = [Text(line, style=colours.get(line.strip()[:1], "")) for line in str(explanation).splitlines()]
    return Text("\n").join([*lines, Text()])


def _mistake(console: Console, engine: Engine) -> None:
    console.print(_heading("A mistake is pointed at, and disturbs nobody else"))
    try:
        engine.subscribe("mistyped", MISTAKE)
    except HarkenError as error:
        said, _, context = str(error).partition("\n")
        console.print(Text(said, style="yellow"))
        console.print(Text(f"{context}\n", style="yellow"), soft_wrap=True)  # carets stay below what they point at


def _warm_up() -> float:
    """Seconds that a first engine takes, for which kernels are compiled, once per machine, or loaded.

    What is shown later is what an engine does that has been in use for a while.
    """
    start = time.perf_counter()
    engine = Engine(schema=SCHEMA)
    wishes = [*WISHES, *robots(ROBOTS, SEED)]
    engine.subscribe_many((wish.id, wish.expression) for wish in wishes)
    some = offers(10, SEED)
    engine.match_batch(some)
    engine.match(some[0])
    return time.perf_counter() - start


def _measure(engine: Engine, batches: Sequence[list[Offer] | pa.Table]) -> tuple[int, int, float]:
    """Events, matches and seconds of matching in batches, for a fixed time so that any algorithm fits."""
    engine.match_batch(batches[0])  # arranges what was subscribed
    events = matches = 0
    start = time.perf_counter()
    for batch in cycle(batches):
        matches += len(engine.match_batch(batch))
        events += len(batch)
        if time.perf_counter() - start >= MEASURED_SECONDS:
            break
    return events, matches, time.perf_counter() - start


def _summary(
    console: Console, engine: Engine, first_use: float, measured: dict[str, tuple[int, int, float]]
) -> None:
    console.print(_heading("Summary"))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(style="bold")
    table.add_row("algorithm", engine.algorithm)
    table.add_row("subscriptions", f"{len(engine):,}")
    table.add_row("first use", f"kernels compiled, or loaded from disk, in {first_use:.1f} s")
    for how, (events, matches, seconds) in measured.items():
        counts = f"{events:,} events, {matches:,} matches"
        table.add_row(f"warm, {how}", f"{events / seconds:,.0f} events/s ({counts})")
    console.print(table)
