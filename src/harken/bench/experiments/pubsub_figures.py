"""Figures 7 to 9 of Mishra and Sahni: PUBSUB by bucket size, number of subscriptions and number of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harken.bench.loading import Contender, contenders
from harken.bench.measuring import Bench, Figure, Plot, Ratio, Result
from harken.bench.throughput import compete, curves
from harken.workloads import BooleanExpressions, workload_of

TREES = {"PS-IT": "interval-tree", "PS-RBPST": "priority-search-tree"}
"""The paper's names for PUBSUB with the same structure for every attribute."""

OTHERS = ("be-tree", "siena", "counting", "propagation", "dynamic")

ASKED = {"uniform": 1.2, "zipf": 0.9}
"""How fast the better of the two trees is to be, in times of BE-Tree ..."""

ASKED_OF_SIENA = 40.0
"""... and in times of Siena."""

MATCHES, FEWEST, MOST = 1_000_000, 20, 1_000
"""Matches that the events of a repeat have together, about; how many events these are, at least and at most."""

PAPER_7 = (
    "Of 1,000,000 subscriptions on 1,000 attributes, buckets of 5,000 or more made matching quickest, for "
    "matching probabilities from 0.01 % to 15 % and for both interval trees and priority search trees. Where "
    "subscriptions come and go often, smaller ones would likely be better. The figure gives no numbers in the "
    "text."
)
PAPER_8 = (
    "From 100,000 to 5,000,000 subscriptions on 400 attributes, 1 % matching, on a core of 1.2 GHz: uniform, "
    "PUBSUB took 19 to 31 % less time than BE-Tree and 97 to 99 % less than Siena; by Zipf's law it was level "
    "with BE-Tree and 38 to 147 times as fast as Siena. Priority search trees were slightly ahead of interval "
    "trees from 1,000,000 subscriptions on. The figure gives no numbers in the text."
)
PAPER_9 = (
    "Of 1,000,000 subscriptions on 100 to 1,500 attributes, 1 % matching: time fell slightly with the number "
    "of attributes, as subscriptions have fewer in common. PUBSUB was 24 to 30 % faster than BE-Tree "
    "(uniform), and 6.2 to 7.5 % (Zipf). The figure gives no numbers in the text."
)

NOTES = [
    "All engines held the same subscriptions, found the same matches of a sample of events, and what the "
    "reference semantics say; they matched in turns.",
    "All are Harken's own, compiled in the same way and fed by the same encoding of events: the paper's "
    "contenders were programs of different people.",
]


def run_bucket_size(bench: Bench) -> Result:
    """Match with buckets of several sizes, at several matching probabilities (figure 7)."""
    subscriptions, dimensions = bench.pick((2_000, 100), (1_000_000, 1_000))
    sizes = bench.pick((20, 5_000), (10, 100, 1_000, 5_000))
    chances = bench.pick((0.01, 0.15), (0.0001, 0.01, 0.15))
    figures, lines = list[Figure](), dict[float, dict[str, Figure]]()
    ratios = list[Ratio]()
    for chance in chances:
        pubsub = [each for size in sizes for each in _pubsub(size, f", buckets of {size:,}")]
        said = BooleanExpressions(dimensions, chance)
        found = _measured(bench, said, subscriptions, pubsub, f"{chance:.2%} match")
        figures += found.values()
        for size in sizes:
            by_tree = {name: found[f"{name}, buckets of {size:,}"] for name in TREES}
            point = {f"{name}, {chance:.2%} match": figure for name, figure in by_tree.items()}
            lines.setdefault(float(size), {}).update(point)
        ratios += _ratios(found, f"PS-IT, buckets of {sizes[-1]:,}", f"{chance:.2%} match")
    return Result(
        f"PUBSUB by bucket size, {subscriptions:,} subscriptions on {dimensions:,} attributes, one core",
        _parameters(bench),
        figures,
        ratios,
        Plot("clauses per bucket", "microseconds per event", curves(lines, _per_event), log_x=True, log_y=True),
        PAPER_7,
        NOTES,
    )


def run_scaling(bench: Bench) -> Result:
    """Match at growing numbers of subscriptions (figure 8)."""
    sizes, dimensions = bench.pick((1_000, 4_000), (100_000, 1_000_000, 5_000_000)), bench.pick(100, 400)
    cases = {
        (float(size), zipf): (
            BooleanExpressions(dimensions, distribution=zipf),
            size,
            f"{zipf}, {size:,} subscriptions",
        )
        for zipf in ("uniform", "zipf")
        for size in sizes
    }
    return _over(bench, cases, "number of subscriptions", "subscriptions", PAPER_8)


def run_dimensions(bench: Bench) -> Result:
    """Match with ever more attributes (figure 9)."""
    size, dimensions = bench.pick(2_000, 1_000_000), bench.pick((50, 200), (100, 400, 1_500))
    cases = {
        (float(each), zipf): (BooleanExpressions(each, distribution=zipf), size, f"{zipf}, {each:,} attributes")
        for zipf in ("uniform", "zipf")
        for each in dimensions
    }
    return _over(bench, cases, "number of attributes", "attributes", PAPER_9)


def _over(
    bench: Bench,
    cases: Mapping[tuple[float, str], tuple[BooleanExpressions, int, str]],
    title: str,
    x_label: str,
    paper: str,
) -> Result:
    """Both distributions along one axis."""
    figures, ratios, lines = list[Figure](), list[Ratio](), dict[float, dict[str, Figure]]()
    for (x, distribution), (said, size, where) in cases.items():
        found = _measured(bench, said, size, list(_pubsub(5_000, "")), where)
        figures += found.values()
        ratios += _ratios(found, "PS-IT", where)
        best = max(TREES, key=lambda name: found[name].median)
        for other, asked in (("be-tree", ASKED[distribution]), ("siena", ASKED_OF_SIENA)):
            said_of = f"the better of both trees / {other}, {where}"
            ratios.append(Ratio.of(said_of, found[best], found[other], bench.target(asked)))
        lines.setdefault(x, {}).update({f"{name}, {distribution}": each for name, each in found.items()})
    return Result(
        f"Matching time against the {title}, 1 % matching, one core, encoding included",
        _parameters(bench),
        figures,
        ratios,
        Plot(x_label, "microseconds per event", curves(lines, _per_event), log_x=True, log_y=True),
        paper,
        NOTES,
    )


def _pubsub(bucket_size: int, suffix: str) -> Iterable[Contender]:
    for name, structure in TREES.items():
        yield Contender(name + suffix, "pubsub", {"bucket_size": bucket_size, "structures": structure})


def _measured(
    bench: Bench, said: BooleanExpressions, size: int, pubsub: list[Contender], where: str
) -> dict[str, Figure]:
    taking_part = [*pubsub, *contenders(OTHERS)]
    events = bench.pick(200, max(FEWEST, min(MOST, int(MATCHES / (size * said.matching)))))
    return compete(bench, workload_of(said, bench.seed), size, taking_part, lambda _: events, where)


def _parameters(bench: Bench) -> dict[str, str]:
    return {
        "subscriptions": "7 predicates on average, 30 % equalities, half of the ranges with two ends",
        "events": "15 attributes on average",
        "events per repeat": bench.pick(
            "200", f"as many as have about {MATCHES:,} matches, but {FEWEST} to {MOST:,}; the same for all"
        ),
    }


def _ratios(found: Mapping[str, Figure], ours: str, where: str) -> list[Ratio]:
    return [Ratio.of(f"{ours} / {name}, {where}", found[ours], found[name]) for name in OTHERS]


def _per_event(figure: Figure) -> float:
    """Microseconds per event, the paper's unit."""
    return 1e6 / figure.median
