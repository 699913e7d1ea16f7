"""Subscriptions that look into texts, or ask where a point lies, against asking each of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from harken import Engine, Point
from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.language.parser import parse
from harken.model.evaluation import lies
from harken.model.expressions import Spatial, TextMatch
from harken.model.text import text_test

ENGINE, EACH = "dynamic", "asking each"

WORDS, LONG = 20_000, 12
"""Words that texts are made of, and how many a text has."""

ASKED = 100
"""Times the speed of asking each, where there are many."""

Subscription = Callable[[random.Random, Sequence[str]], str]

SORTS: dict[str, Subscription] = {
    "CONTAINS": lambda chance, words: f"text CONTAINS '{_some(chance, words, 2)}'",
    "STARTS WITH": lambda chance, words: f"text STARTS WITH '{_some(chance, words, 1)}'",
    "ENDS WITH": lambda chance, words: f"text ENDS WITH '{_some(chance, words, 1)}'",
    "LIKE": lambda chance, words: f"text LIKE '%{_some(chance, words, 1)}%{_some(chance, words, 1)}%'",
    "MATCHES": lambda chance, words: f"text MATCHES '{_some(chance, words, 1)} .*[a-m]{_some(chance, words, 1)}$'",
    "WITHIN": lambda chance, words: f"place WITHIN {_box(chance)}",
}


def run(bench: Bench) -> Result:
    """Match the same events by an engine and by asking each predicate, sort by sort."""
    size, count, few = bench.pick((500, 200, 20), (100_000, 2_000, 10))
    figures, ratios = list[Figure](), list[Ratio]()
    chance = random.Random(bench.seed)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(WORDS)]
    events = [{"text": _some(chance, words, LONG), "place": _point(chance)} for _ in range(count)]
    for sort, subscription in SORTS.items():
        texts = {id: subscription(chance, words) for id in range(size)}
        found = _measured(bench, sort, texts, events, few)
        figures += found.values()
        ratios.append(Ratio.of(f"{ENGINE} / {EACH}, {sort}", found[ENGINE], found[EACH], bench.target(ASKED)))
    return Result(
        f"{size:,} subscriptions that look into values, one core",
        {
            "subscriptions": f"one predicate each, of words from {WORDS:,}, or of a box",
            "events": f"a text of {LONG} words, and a point",
            "events are read from": f"Arrow ({ENGINE}), dictionaries ({EACH})",
            "events per repeat": f"{count:,} ({ENGINE}), {few:,} ({EACH})",
        },
        figures,
        ratios,
        notes=[
            "Asking each: what evaluates a predicate, made once for each of them and then called for every event.",
            "Both found the same on the events that both had.",
        ],
    )


def _measured(
    bench: Bench, sort: str, texts: Mapping[int, str], events: list[dict[str, object]], few: int
) -> dict[str, Figure]:
    engine = Engine(ENGINE)
    with bench.progress.step(f"loading {len(texts):,} of {sort}", len(texts)) as done:
        engine.subscribe_many(texts.items())
        done(len(texts))
    tests = [(id, *_asking(text)) for id, text in texts.items()]

    def ask_each(some: list[dict[str, object]]) -> set[tuple[int, int]]:
        return {(row, id) for row, event in enumerate(some) for id, name, test in tests if test(event[name])}

    found = engine.match_batch(_table(events[:few]))
    pairs = set(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))
    if pairs != ask_each(events[:few]):
        raise AssertionError(f"the engine and {EACH} disagree on {sort}")
    counts = {ENGINE: len(events), EACH: few}
    work: dict[str, Callable[[], object]] = {
        ENGINE: partial(engine.match_batch, _table(events)),
        EACH: partial(ask_each, events[:few]),
    }
    seconds = bench.in_turns(work, f"matching: {sort}")
    return {
        name: Figure(f"{name}, {sort}", "events/s", tuple(counts[name] / each for each in samples))
        for name, samples in seconds.items()
    }


def _asking(text: str) -> tuple[str, Callable[[Any], bool]]:
    """The attribute that a subscription asks of, and what asks it: made once, as whoever asks each would."""
    leaf = parse(text)
    if isinstance(leaf, TextMatch):
        return leaf.attribute, text_test.__wrapped__(leaf.operator, leaf.pattern, leaf.escape)
    assert isinstance(leaf, Spatial)
    return leaf.attribute, partial(_lies, leaf)


def _lies(asked: Spatial, value: Point) -> bool:
    return lies(value, asked.operator, asked.shape)


def _table(events: Sequence[Mapping[str, object]]) -> pa.Table:
    texts, places = ([event[name] for event in events] for name in ("text", "place"))
    points = pa.array([(place.x, place.y) for place in places], pa.list_(pa.float64(), 2))  # type: ignore[attr-defined]
    return pa.table({"text": pa.array(texts, pa.string()), "place": points})


def _some(chance: random.Random, words: Sequence[str], count: int) -> str:
    return " ".join(chance.choices(words, k=count))


def _point(chance: random.Random) -> Point:
    return Point(chance.uniform(0, 1_000), chance.uniform(0, 1_000))


def _box(chance: random.Random) -> str:
    x, y = chance.uniform(0, 1_000), chance.uniform(0, 1_000)
    return f"BOX({x:.3f}, {y:.3f}, {x + chance.uniform(0, 5):.3f}, {y + chance.uniform(0, 5):.3f})"
