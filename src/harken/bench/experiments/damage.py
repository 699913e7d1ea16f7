"""Saved engines, damaged in thousands of ways: each is refused as such, or works."""

from __future__ import annotations

import faulthandler
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

from harken import Engine, HarkenError
from harken.bench.damage import copied, mutate
from harken.bench.measuring import Bench, Figure, Result
from harken.errors import BoundError, IndexFormatError, UnknownAlgorithmError
from harken.workloads.mixed import Mixed, event_table

ENGINES: dict[str, tuple[str, dict[str, object], int]] = {
    "dynamic": ("dynamic", {"patience": 1, "margin": 0.0}, 60),
    "static": ("static", {"checks_per_lookup": 0.0}, 60),
    "propagation": ("propagation", {}, 60),
    "counting": ("counting", {}, 60),
    "siena": ("siena", {}, 60),
    "tree": ("tree", {"waiting": 5}, 60),
    "rapid": ("rapid", {"waiting": 5}, 60),
    "pubsub": ("pubsub", {"bucket_size": 3}, 60),
    "be-tree": ("be-tree", {"node_size": 3}, 60),
    "reference": ("reference", {}, 40),
    "auto": ("auto", {"small": 5}, 60),
    "many": ("dynamic", {}, 1_200),
}
"""Engines that are damaged: algorithm, options and about how many subscriptions; `many` has ids in flat arrays."""

SECONDS, ROOM = 60, 1 << 30
"""Time and further memory that one of them may take."""

REFUSED, WORKED = "refused", "worked"


def run(bench: Bench) -> Result:
    """Damage engines in turn, in processes of their own; AssertionError if one ever does something else."""
    mutations = bench.pick(70, 21_000)
    outcomes: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder, bench.progress.step("damaging engines", mutations) as tell:
        prepare(Path(folder), bench.seed)
        for number, engine, outcome in outcomes_of(Path(folder), bench.seed, 0, mutations):
            if outcome not in (REFUSED, WORKED):
                raise AssertionError(f"mutation {number} of {engine}, seed {bench.seed}: {outcome}")
            outcomes[engine, outcome] += 1
            tell(number + 1)
    figures = [Figure("mutations", "folders", (float(outcomes.total()),), bench.target(20_000))]
    for outcome in (REFUSED, WORKED):
        count = sum(times for (_, what), times in outcomes.items() if what == outcome)
        figures.append(Figure(outcome, "folders", (float(count),)))
    figures += [
        Figure(f"{engine}, {outcome}", "folders", (float(times),))
        for (engine, outcome), times in sorted(outcomes.items())
    ]
    return Result(
        "Saved engines, damaged",
        {"engines": ", ".join(ENGINES), "seed": bench.seed},
        figures,
        notes=[
            "Bytes, words, lengths, headers, numbers in JSON, cells of tables and whole files were changed; in "
            "four of five folders the manifest was then made to agree, so that no checksum tells. Half were "
            "loaded without looking at checksums.",
            "Refused: `Engine.load` raised IndexFormatError (or said that there is no such algorithm). Worked: "
            "what was loaded matched, explained, took in and let go of subscriptions, learned, was saved and "
            "loaded again without any error. A crash, a hang of a minute, another error or a gibibyte more of "
            "memory would have ended the run.",
        ],
    )


def prepare(folder: Path, seed: int) -> None:
    """Save the engines that are to be damaged, each after some use."""
    for name, (algorithm, options, size) in ENGINES.items():
        mixed, engine = Mixed(seed), Engine(algorithm, **options)  # type: ignore[arg-type]
        ids = [f"s{at}" if name == "auto" else at for at in range(size)]
        engine.subscribe_many([(id, mixed.text()) for id in ids])
        engine.match_batch([mixed.event() for _ in range(40)])
        engine.unsubscribe_many(ids[::4])
        again = [{"id": id, "expression": mixed.text(), "owner": "Ann"} for id in ids[1 : size // 2 : 8]]
        engine.subscribe_many(again, replace=True)
        engine.save(folder / name)


def outcomes_of(folder: Path, seed: int, start: int, stop: int) -> Iterator[tuple[int, str, str]]:
    """What came of each mutation: number, engine, outcome. A process that dies is followed by another."""
    while start < stop:
        command = [sys.executable, "-W", "error", "-m", __name__, str(folder), str(seed), str(start), str(stop)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None, "it is piped"
            assert process.stderr is not None, "it is piped"
            for line in process.stdout:
                number, engine, outcome = line.rstrip("\n").split("\t")
                yield int(number), engine, outcome
                start = int(number) + 1
            said = process.stderr.read()
        if process.returncode != 0:
            yield start, _engine_of(start), f"the process ended with {process.returncode}: {said[-2_000:]}"
            start += 1


def _engine_of(number: int) -> str:
    """Which engine a mutation is of; the large one takes longest, and is the rarest."""
    return "many" if number % 20 == 19 else list(ENGINES)[number % (len(ENGINES) - 1)]


def damage(folder: Path, seed: int, start: int, stop: int) -> None:
    """Damage engines and try them, in this process; print what came of each."""
    faulthandler.enable()
    for name in {_engine_of(number) for number in range(start, stop)}:
        _warm(folder, name)
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    victim = folder / f"victim-{start}"
    for number in range(start, stop):
        chance = Random(f"{seed}-{number}")
        copied(folder / _engine_of(number), victim)
        signal.alarm(SECONDS)  # ends the process, whatever it is at
        done = mutate(victim, chance)
        outcome = attempt(victim, chance)
        signal.alarm(0)
        told = outcome if outcome in (REFUSED, WORKED) else f"{done}: {outcome}"
        print(number, _engine_of(number), told.replace("\n", " ").replace("\t", " "), sep="\t", flush=True)


def attempt(folder: Path, chance: Random) -> str:
    """Load an engine, and use it in every way if that is possible; what came of it."""
    algorithm = chance.choice((None, None, None, None, "reference", "propagation"))
    try:
        engine = Engine.load(folder, algorithm=algorithm, verify=chance.random() < 0.5)
    except (IndexFormatError, UnknownAlgorithmError):
        return REFUSED
    except BaseException as error:
        return f"loading: {error!r}"
    try:
        use(engine, chance, folder.parent / "saved again")
    except BaseException as error:
        return f"using: {error!r}"
    return WORKED


def use(engine: Engine, chance: Random, folder: Path) -> None:
    """Do everything that can be done with an engine."""
    mixed = Mixed(chance.randrange(2**32))
    events = [mixed.event() for _ in range(12)]
    for event in events:
        engine.match(event)
    engine.match_batch(events)
    with suppress(HarkenError):  # a changed schema asks for columns of other types
        engine.match_batch(event_table(events))
    ids = list(engine)
    for id in ids[:5]:
        engine.subscription(id)
        with suppress(BoundError):  # changed limits allow less
            engine.explain(events[0], id)
    engine.stats()
    _change(engine, ids, mixed, chance)
    engine.match_batch(events)
    engine.learn(events)
    engine.match_batch(events)
    engine.save(folder)
    again = Engine.load(folder)
    if list(again) != list(engine):
        raise AssertionError("what was saved again is not what there was")
    again.match(events[1])


def _change(engine: Engine, ids: list[int | str], mixed: Mixed, chance: Random) -> None:
    """Take in and let go of some, or of all there are."""
    is_text = bool(ids) and isinstance(ids[0], str)
    fresh = [(f"new{at}" if is_text else -1 - at, mixed.text()) for at in range(10)]
    for id, text in fresh:
        with suppress(HarkenError):  # changed limits and schemas allow less, and a changed id may be taken
            engine.subscribe(id, text)
    engine.subscribe_many([(id, mixed.text()) for id in ids[:10]], replace=True, on_error="collect")
    leaving = chance.sample(ids, chance.choice((len(ids), len(ids) // 2)))
    for id in leaving[:20]:
        engine.unsubscribe(id)
    engine.unsubscribe_many(leaving[20:])


def _warm(folder: Path, name: str) -> None:
    """Load what is compiled for an engine, so that it counts for nobody's time or memory."""
    copied(folder / name, folder / "warm")
    outcome = attempt(folder / "warm", Random(name))
    if outcome != WORKED:
        raise AssertionError(f"{name} does not work without any damage: {outcome}")


if __name__ == "__main__":
    damage(Path(sys.argv[1]), *map(int, sys.argv[2:]))
