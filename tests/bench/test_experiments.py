"""Every experiment runs at its small scale, and finds what it is there to find."""

from __future__ import annotations

import functools
import math

import pytest

from harken import algorithms
from harken.bench import report
from harken.bench.experiments import experiments, load
from harken.bench.measuring import Bench

PLOTTED = {name for name in experiments() if name.startswith(("fabret", "pubsub", "rapid"))} | {
    "choosing",
    "growth",
    "single-event",
    "soak",
    "spark-stream",
    "stream-age",
    "symmetric-fig5",
    "symmetric-fig6",
    "symmetric-fig7",
    "updates",
    *(f"parallel-fig{number}" for number in range(5, 16)),
    *("parallel-arrow", "parallel-updates"),
}

LONG = {
    *("spark-compile", "spark-join", "spark-scale", "spark-stream", "store-start", "storage-stress", "stream-age"),
    "stream-stress",
    *("damage", "exits", "faults", "first-use", "growth", "symmetric-encodings", "symmetric-faults"),
    *("pubsub-fig8", "pubsub-fig9", "rapid-fig4", "rapid-fig6"),
    *("parallel-fig6", "parallel-fig8", "parallel-fig9", "parallel-fig10", "parallel-fig12", "parallel-fig14"),
    *("parallel-fig13", "parallel-fig15", "parallel-arrow"),
    *("fabret-fig3b", "fabret-fig4b", "fabret-predicates", "symmetric-fig7"),
}
"""Those that take their time even so: they start Spark, servers or many processes, or are like another one."""

ON_DATABASES = {name for name in experiments() if name.startswith("symmetric-")} - {"symmetric-penalty"}

FOUND = {
    "output": {"output", "output, matches", "be-gen"},
    "peers": {
        *("equalities, batch", "equalities, one by one"),
        *("equalities-and-ranges, batch", "equalities-and-ranges, one by one"),
    },
    "damage": {"mutations", "refused", "worked"},
    "compile": {
        *("one shape", "all distinct", "connectives", "5 of 50 attributes", "one shape / all distinct"),
        "2,000 texts of 5 of 50 attributes into an engine",
    },
    "exits": {
        "ended well: CSV",
        "ended well: a bad row of CSV",
        "ended well: CSV, reader gone",
        "ended well: check",
    },
    "fabret-fig3a": {
        "dynamic alone, 50,000 subscriptions",
        "clusters visited, 50,000 subscriptions",
        "clauses checked, 50,000 subscriptions",
        "part of the yardstick, 50,000 subscriptions",
        "propagation, no prefetch, 10,000 subscriptions",
        "dynamic / propagation at 50,000",
        "dynamic: at 50,000 / at 10,000",
    },
    "fabret-fig3b": {"dynamic, w1, 30,000 subscriptions", "propagation: w1 / w2 at 30,000"},
    "fabret-fig3c": {"dynamic, index, 30,000 subscriptions", "propagation, index, 10,000 subscriptions"},
    "fabret-fig3d": {"dynamic, 50,000 subscriptions", "dynamic / propagation at 50,000"},
    "fabret-domain": {"dynamic, 10 values per attribute", "propagation: 100 values per attribute / 10"},
    "fabret-predicates": {
        "dynamic, 14 predicates per subscription",
        "dynamic: 14 predicates per subscription / 4",
    },
    "fabret-fig4a": {"dynamic, after the change", "dynamic / no change, after the change"},
    "fabret-fig4b": {"no change, before the change", "dynamic / no change, after the change"},
    "faults": {"failures", "at a step"},
    "first-use": {"first process", "later process", "first process, from start to exit", "first / later"},
    "parallel-fig5": {"static, 1 thread", "lock, 1 thread", "stm, 1 thread"},
    "parallel-fig6": {"static, 1 thread", "lock, 1 thread", "stm, 1 thread"},
    "parallel-fig7": {"static, 1 thread", "lock, 1 thread", "stm, 1 thread"},
    "parallel-fig8": {"static, 1 thread", "lock, 1 thread", "stm, 1 thread"},
    "parallel-fig9": set(),
    "parallel-fig10": set(),
    "parallel-fig11": {"static, 1 thread", "lock, 1 thread", "stm, 1 thread"},
    "parallel-fig12": {"static, 1 thread", "lock, 1 thread", "stm, 1 thread"},
    "parallel-fig13": set(),
    "parallel-fig14": {"1 thread, 5,000 subscriptions", "1 thread, 10,000 subscriptions"},
    "parallel-fig15": {"1 thread, 5,000 subscriptions", "1 thread, 10,000 subscriptions"},
    "parallel-arrow": {"static, 1 thread", "lock, 1 thread", "stm, 1 thread"},
    "parallel-heavy": {"in a batch, 1 thread", "by a call each, 1 thread"},
    "parallel-updates": {
        *("throughput beside 0 updates/s", "updates made, of 1,000"),
        *("a match, 99.9%, beside 10,000 updates/s", "a match, longest, beside 100,000 updates/s"),
    },
    "choosing": {"auto, light-query", "rapid, be-gen", "pubsub, equalities-and-ranges", "static, w0"},
    "patterns": {"dynamic, CONTAINS", "dynamic / asking each, MATCHES", "dynamic / asking each, WITHIN"},
    "pubsub-fig7": {
        "PS-IT, buckets of 20, 15.00% match",
        "PS-RBPST, buckets of 5,000, 1.00% match",
        "counting, 1.00% match",
        "PS-IT, buckets of 5,000 / propagation, 15.00% match",
    },
    "pubsub-fig8": {
        "PS-RBPST, zipf, 4,000 subscriptions",
        "dynamic, uniform, 1,000 subscriptions",
        "PS-IT / counting, zipf, 1,000 subscriptions",
        "the better of both trees / be-tree, uniform, 1,000 subscriptions",
    },
    "pubsub-fig9": {"PS-IT, uniform, 200 attributes", "PS-IT / dynamic, zipf, 50 attributes"},
    "ranges": {"dynamic, 10,000 subscriptions", "dynamic / scan with early exit", "dynamic / scan by columns"},
    "rapid-fig3": {
        "tree, Zipf, 10,000 subscriptions",
        "counting, exponential, 2,000 subscriptions",
        "rapid / tree, Zipf, 10,000 subscriptions",
        "rapid in order / tree, exponential, 2,000 subscriptions",
    },
    "rapid-fig4": {"rapid, alpha = 3", "dynamic, p = 0.5", "rapid / tree, alpha = 1", "tree / counting, p = 0.02"},
    "rapid-fig5": {"tree / rapid, fewest matches", "rapid: fewest / most matches"},
    "rapid-fig6": {"tree / rapid, most matches", "rapid: fewest / most matches"},
    "single-event": {"median", "99th percentile"},
    "growth": {
        *("a change, at first", "a change, at last", "files, at most, beside a change"),
        *("a batch, at first", "a batch, at last", "a batch, at first / at last"),
    },
    "soak": {"operations", "match", "match_columns", "save_and_load"},
    "spark-compile": {"one core", "two cores", "two cores / one core"},
    "spark-join": {
        "Harken, 2,000 subscriptions",
        "Harken / plain join at 2,000",
        "Harken / join with keys at 2,000",
    },
    "spark-scale": {"matching", "counting rows", "worker ready after", "matching / counting rows"},
    "spark-stream": {"batch, median", "slowest batch that met changes"},
    "store-start": {"from local disk", "from the store, cache empty", "an empty cache costs"},
    "stream-age": {"a batch, young", "a batch, old", "a batch, young / old"},
    "stream-stress": {"stream", "batch job", "write", "compact", "vacuum"},
    "storage-stress": {"read", "write", "compact", "vacuum"},
    "symmetric-faults": {"engine, memory", "auction, memory", "engine, SQLite", "auction, PostgreSQL"},
    "symmetric-fig4": {"matching with 2,000, memory", "matching with 2,000, SQLite", "loading 500, PostgreSQL"},
    "symmetric-fig5": {"fixed, memory, 2,000 subscriptions", "fixed-geometric, PostgreSQL: 500 / 2,000"},
    "symmetric-fig6": {"proportional, SQLite, batches of 4"},
    "symmetric-fig7": {"large-intermediate-results, memory, batches of 1"},
    "symmetric-encodings": {"market, SQLite, ranges", "market, PostgreSQL: paper / ranges"},
    "symmetric-penalty": {"symmetric", "classical", "symmetric / classical"},
    "threads": {"match", "match_batch", "look", "come_and_go", "swap", "alone", "save_and_load"},
    "updates": {"batches in", "batches out", "one text subscribed, beyond parsing", "one unsubscribed"},
    "yardstick": {"prefetched", "dependent", "prefetched / dependent"},
}


def _marks(name):
    marked = {"long": LONG, "service": ON_DATABASES}
    return [getattr(pytest.mark, mark) for mark, names in marked.items() if name in names]


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in experiments()])
def test_a_small_run_finds_its_figures_and_holds_them_to_no_target(name, tmp_path, request):
    if name.startswith("spark"):
        request.getfixturevalue("lent_spark")  # is lent, and need not be started
    bench = Bench(repeats=1, minutes=0.05)
    result = load(name)(bench)
    measured = [*result.figures, *result.ratios]
    assert {each.name for each in measured} >= FOUND[name]
    assert all(math.isfinite(sample) and sample > 0 for each in measured for sample in each.samples)
    assert all(each.target is None for each in measured)
    assert (result.plot is not None) is (name in PLOTTED)
    assert bool(result.paper) is name.startswith(("fabret", "parallel-fig", "pubsub", "rapid", "symmetric-fig"))
    written = report.write(tmp_path, name, report.to_dict(name, bench, result), result)
    assert all(path.stat().st_size > 0 for path in written)


@functools.cache
def fig3d():
    """A run for all who look at it."""
    return load("fabret-fig3d")(Bench(repeats=1))


@pytest.mark.parametrize("algorithm", ["counting", "static"])
def test_an_algorithm_takes_part_as_soon_as_it_is_registered(algorithm):
    result = fig3d()
    took_part = any(each.name.startswith(algorithm) for each in result.figures)
    assert took_part is (algorithm in algorithms())


def test_figures_that_the_paper_plots_have_a_line_for_each_contender():
    plot = load("fabret-predicates")(Bench(repeats=1)).plot
    assert {"dynamic", "propagation"} <= {curve.label for curve in plot.curves}
    assert all(curve.x == (4.0, 8.0, 14.0) and len(curve.y) == 3 for curve in plot.curves)
