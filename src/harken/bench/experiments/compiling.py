"""Text to compiled form, of few shapes and of many, and from there into an engine."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa

from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.compiler import Texts, compile_texts
from harken.compiler.bulk import SMALLEST_BULK
from harken.engine import Engine
from harken.language import parse
from harken.normal.compiled import CompiledBuilder
from harken.normal.form import normalise

SHARED_TARGET, DISTINCT_TARGET, LOADING_TARGET = 100_000, 50_000, 2.0
_ONE_BY_ONE = "one shape, one by one"


def run(bench: Bench) -> Result:
    """Compile texts of one shape, of thousands of shapes and of no common shape, and load some, on one core."""
    chance = random.Random(bench.seed)
    texts = _texts(bench, chance)
    loaded = [(at, five_of_fifty(chance)) for at in range(bench.pick(2_000, 100_000))]
    single = texts["one shape"][: len(texts["all distinct"])]
    for these in texts.values():
        _check(these[:SMALLEST_BULK])  # which compiles or loads the kernels, too

    contenders: dict[str, Callable[[], object]] = {name: _compiling(these) for name, these in texts.items()}
    contenders[_ONE_BY_ONE] = lambda: _one_by_one(single)
    contenders["loading"] = lambda: _load(loaded)
    contenders["loading"]()
    seconds = bench.in_turns(contenders, "compiling texts")
    counts = {name: len(these) for name, these in texts.items()} | {_ONE_BY_ONE: len(single)}
    figures = {name: _rate(bench, name, counts[name], seconds[name]) for name in counts}
    loading = Figure(
        f"{len(loaded):,} texts of 5 of 50 attributes into an engine",
        "s",
        seconds["loading"],
        bench.target(LOADING_TARGET),
        lower_is_better=True,
    )
    return Result(
        "Text to compiled form, one core",
        {name: f"{count:,} texts" for name, count in counts.items()},
        [*figures.values(), loading],
        [
            Ratio.of("one shape: bulk / one by one", figures["one shape"], figures[_ONE_BY_ONE]),
            Ratio.of("one shape / all distinct", figures["one shape"], figures["all distinct"]),
        ],
        notes=[
            "One shape: 4 predicates that differ in literals only. 4,060 shapes: 5 equalities on 2 fixed and 3 "
            "of 30 attributes. All distinct: 2 to 5 predicates on attributes that no other text mentions. "
            "Connectives: 3 to 7 predicates under AND, OR and NOT in any nesting. 5 of 50 attributes: values from "
            "0 to 1,000, 40% equalities and 60% ranges of width 100; nearly all of distinct shapes.",
            "The first thousand of each were compared with what they compile to one by one.",
        ],
    )


def _texts(bench: Bench, chance: random.Random) -> dict[str, list[str]]:
    shared, distinct = bench.pick(20_000, 1_000_000), bench.pick(2_000, 50_000)
    return {
        "one shape": [_camera(chance) for _ in range(shared)],
        "4,060 shapes": [five_equalities(chance) for _ in range(shared)],
        "all distinct": [_distinct(chance, at) for at in range(distinct)],
        "connectives": [_connected(chance, chance.randint(3, 7)) for _ in range(distinct)],
        "5 of 50 attributes": [five_of_fifty(chance) for _ in range(distinct)],
    }


def _rate(bench: Bench, name: str, count: int, seconds: tuple[float, ...]) -> Figure:
    targets = {_ONE_BY_ONE: None, **dict.fromkeys(("one shape", "4,060 shapes"), bench.target(SHARED_TARGET))}
    target = targets.get(name, bench.target(DISTINCT_TARGET))
    return Figure(name, "texts/s", tuple(count / each for each in seconds), target)


def _compiling(texts: list[str]) -> Callable[[], object]:
    def work() -> None:
        compilation = compile_texts(Texts(range(len(texts)), texts))
        if compilation.rejects or compilation.table.num_rows != len(texts):
            raise AssertionError(f"{len(compilation.rejects)} texts were rejected")

    return work


def _check(texts: list[str]) -> None:
    """Compare a bulk with the same texts one by one; the values of a set come in any order."""
    in_bulk, apart = compile_texts(Texts(range(len(texts)), texts)).table, _one_by_one(texts)
    for rows in zip(*(table.column("clauses").to_pylist() for table in (in_bulk, apart)), strict=True):
        one, other = ([sorted(map(repr, clause)) for clause in clauses] for clauses in rows)
        if one != other:
            raise AssertionError("texts compile to something else in bulk")


def _one_by_one(texts: list[str]) -> pa.Table:
    builder = CompiledBuilder()
    for at, text in enumerate(texts):
        builder.add(at, normalise(parse(text)))
    return builder.finish()


def _load(rows: list[tuple[int, str]]) -> None:
    engine = Engine()
    engine.subscribe_many(rows)
    if len(engine) != len(rows):
        raise AssertionError(f"{len(engine):,} of {len(rows):,} subscriptions were loaded")


def _camera(chance: random.Random) -> str:
    maker = chance.choice(["Sony", "Nikon", "Canon", "Leica"])
    return (
        f"item = 'camera' AND price < {chance.randint(50, 3_000)} "
        f"AND maker IN ('{maker}', 'Fuji') AND zoom > {chance.randint(1, 20)}"
    )


def five_equalities(chance: random.Random) -> str:
    """A text of one of 4,060 shapes."""
    attributes = [0, 1, *sorted(chance.sample(range(2, 32), 3))]
    return " AND ".join(f"a{attribute:02d} = {chance.randint(1, 35)}" for attribute in attributes)


def five_of_fifty(chance: random.Random) -> str:
    """A text of one of some billion shapes."""
    return " AND ".join(_equality_or_range(chance, attribute) for attribute in chance.sample(range(50), 5))


def _equality_or_range(chance: random.Random, attribute: int) -> str:
    if chance.random() < 0.4:
        return f"a{attribute} = {chance.randint(0, 1_000)}"
    low = chance.randint(0, 900)
    return f"a{attribute} BETWEEN {low} AND {low + 100}"


def _connected(chance: random.Random, predicates: int) -> str:
    """So many predicates under AND, OR and NOT, nested at random."""
    if predicates == 1:
        return _predicate(chance, f"a{chance.randrange(50)}")
    left = chance.randint(1, predicates - 1)
    sides = (_connected(chance, each) for each in (left, predicates - left))
    both = chance.choice([" AND ", " AND ", " OR "]).join(f"({side})" for side in sides)
    return f"NOT ({both})" if chance.random() < 0.2 else both


def _distinct(chance: random.Random, at: int) -> str:
    return " AND ".join(_predicate(chance, f"x{at}_{each}") for each in range(chance.randint(2, 5)))


def _predicate(chance: random.Random, name: str) -> str:
    makers: list[Callable[[], str]] = [
        lambda: f"{name} {chance.choice(['=', '<', '<=', '>', '>=', '!='])} {chance.randint(0, 999)}",
        lambda: f"{name} = 'v{chance.randint(0, 999)}'",
        lambda: f"{name} IN ('a', 'b', 'c{chance.randint(0, 9)}')",
        lambda: f"{name} BETWEEN {chance.randint(0, 99)} AND {chance.randint(100, 200)}",
    ]
    return chance.choice(makers)()
