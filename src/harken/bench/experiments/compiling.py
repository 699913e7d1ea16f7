"""Text to compiled form: what a shared shape saves, and what a text costs that shares none."""

from __future__ import annotations

import random
from collections.abc import Callable

from harken.bench.measuring import Bench, Figure, Ratio, Result
from harken.compiler import Texts, compile_texts
from harken.language import parse
from harken.normal.compiled import CompiledBuilder
from harken.normal.form import normalise

SHARED_TARGET, DISTINCT_TARGET = 100_000, 5_000


def run(bench: Bench) -> Result:
    """Compile texts of one shape, of thousands of shapes and of no common shape, on one core."""
    shared, distinct = bench.pick(20_000, 1_000_000), bench.pick(2_000, 50_000)
    chance = random.Random(bench.seed)
    texts = {
        "one shape": [_camera(chance) for _ in range(shared)],
        "4,060 shapes": [five_equalities(chance) for _ in range(shared)],
        "all distinct": [_distinct(chance, at) for at in range(distinct)],
    }
    single = texts["one shape"][: len(texts["all distinct"])]
    compile_texts(Texts(range(2_000), texts["one shape"][:2_000]))  # compile or load the kernels first

    contenders: dict[str, Callable[[], object]] = {name: _compiling(these) for name, these in texts.items()}
    contenders["one shape, one by one"] = lambda: _one_by_one(single)
    seconds = bench.in_turns(contenders, "compiling texts")
    counts = {name: len(these) for name, these in texts.items()} | {"one shape, one by one": len(single)}
    shared_target, distinct_target = bench.target(SHARED_TARGET), bench.target(DISTINCT_TARGET)
    targets = {"one shape": shared_target, "4,060 shapes": shared_target, "all distinct": distinct_target}
    figures = {
        name: Figure(name, "texts/s", tuple(counts[name] / each for each in samples), targets.get(name))
        for name, samples in seconds.items()
    }
    return Result(
        "Text to compiled form, one core",
        {name: f"{count:,} texts" for name, count in counts.items()},
        list(figures.values()),
        [
            Ratio.of("one shape: bulk / one by one", figures["one shape"], figures["one shape, one by one"]),
            Ratio.of("one shape / all distinct", figures["one shape"], figures["all distinct"]),
        ],
        notes=[
            "One shape: 4 predicates that differ in literals only. 4,060 shapes: 5 equalities on 2 fixed and 3 "
            "of 30 attributes. All distinct: 2 to 5 predicates on attributes that no other text mentions.",
        ],
    )


def _compiling(texts: list[str]) -> Callable[[], object]:
    def work() -> None:
        compilation = compile_texts(Texts(range(len(texts)), texts))
        if compilation.rejects or compilation.table.num_rows != len(texts):
            raise AssertionError(f"{len(compilation.rejects)} texts were rejected")

    return work


def _one_by_one(texts: list[str]) -> None:
    builder = CompiledBuilder()
    for at, text in enumerate(texts):
        builder.add(at, normalise(parse(text)))
    builder.finish()


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


def _distinct(chance: random.Random, at: int) -> str:
    makers: list[Callable[[str], str]] = [
        lambda name: f"n{name} {chance.choice(['=', '<', '<=', '>', '>=', '!='])} {chance.randint(0, 999)}",
        lambda name: f"s{name} = 'v{chance.randint(0, 999)}'",
        lambda name: f"m{name} IN ('a', 'b', 'c{chance.randint(0, 9)}')",
        lambda name: f"r{name} BETWEEN {chance.randint(0, 99)} AND {chance.randint(100, 200)}",
    ]
    count = chance.randint(2, 5)
    return " AND ".join(chance.choice(makers)(f"{at}_{each}") for each in range(count))
