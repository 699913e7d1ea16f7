"""The experiments, one module each, by name. Nothing is imported until it is run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from harken.bench.measuring import Bench, Result
from harken.errors import UnknownExperimentError


class Experiment(NamedTuple):
    """Where an experiment lives, and what it shows in one line."""

    target: str
    summary: str


_EXPERIMENTS: dict[str, Experiment] = {
    "choosing": Experiment(
        "harken.bench.experiments.choosing:run",
        "all algorithms on the workloads of all papers, and what `auto` makes of them",
    ),
    "compile": Experiment(
        "harken.bench.experiments.compiling:run",
        "text to compiled form: shared shapes, many shapes, all-distinct texts",
    ),
    "damage": Experiment(
        "harken.bench.experiments.damage:run",
        "saved engines, damaged in thousands of ways: each is refused, or works",
    ),
    "exits": Experiment(
        "harken.bench.experiments.exits:run",
        "the command over and over beside busy cores: every run ends as it should",
    ),
    "fabret-fig3a": Experiment(
        "harken.bench.experiments.fabret_scaling:run",
        "matching time against the number of subscriptions, all algorithms (workload w0)",
    ),
    "fabret-fig3b": Experiment(
        "harken.bench.experiments.fabret_operators:run",
        "matching time with order predicates, all algorithms (workloads w1 and w2)",
    ),
    "fabret-fig3c": Experiment(
        "harken.bench.experiments.fabret_memory:run",
        "memory against the number of subscriptions",
    ),
    "fabret-fig3d": Experiment(
        "harken.bench.experiments.fabret_loading:run",
        "loading from the compiled form, subscriptions per second",
    ),
    "fabret-domain": Experiment(
        "harken.bench.experiments.fabret_shapes:run_domain",
        "matching time against the number of values that attributes have",
    ),
    "fabret-predicates": Experiment(
        "harken.bench.experiments.fabret_shapes:run_predicates",
        "matching time against the number of predicates per subscription",
    ),
    "fabret-fig4a": Experiment(
        "harken.bench.experiments.fabret_churn:run_schema",
        "throughput over time while subscriptions move to other attributes",
    ),
    "fabret-fig4b": Experiment(
        "harken.bench.experiments.fabret_churn:run_skew",
        "throughput over time while subscriptions and events become skewed",
    ),
    "faults": Experiment(
        "harken.bench.experiments.faults:run",
        "failures at random steps of changing calls for --minutes; each leaves all of the change or nothing",
    ),
    "first-use": Experiment(
        "harken.bench.experiments.first_use:run",
        "compiling in the first process, loading from the cache in later ones",
    ),
    "growth": Experiment(
        "harken.bench.experiments.growth:run",
        "100,000 small changes of subscriptions, and 100,000 batches: time, files and bytes stay as they are",
    ),
    "output": Experiment(
        "harken.bench.experiments.output:run",
        "matches told per second where events have thousands",
    ),
    "parallel-fig5": Experiment(
        "harken.bench.experiments.parallel_scaling:run_fig5",
        "throughput of ME-IP against threads: static, lock, STM",
    ),
    "parallel-fig6": Experiment(
        "harken.bench.experiments.parallel_scaling:run_fig6",
        "matching time of an event in ME-IP against threads",
    ),
    "parallel-fig7": Experiment(
        "harken.bench.experiments.parallel_scaling:run_fig7",
        "matching time of an event in SE-CP against threads",
    ),
    "parallel-fig8": Experiment(
        "harken.bench.experiments.parallel_scaling:run_fig8",
        "throughput of SE-CP against threads",
    ),
    "parallel-fig9": Experiment(
        "harken.bench.experiments.parallel_profile:run_fig9",
        "time of phase one and of waiting in SE-CP against threads",
    ),
    "parallel-fig10": Experiment(
        "harken.bench.experiments.parallel_profile:run_fig10",
        "time of phase two in SE-CP against threads",
    ),
    "parallel-fig11": Experiment(
        "harken.bench.experiments.parallel_scaling:run_fig11",
        "throughput of Hybrid against threads per event",
    ),
    "parallel-fig12": Experiment(
        "harken.bench.experiments.parallel_scaling:run_fig12",
        "matching time of an event in Hybrid against threads per event",
    ),
    "parallel-fig13": Experiment(
        "harken.bench.experiments.parallel_profile:run_fig13",
        "matching time of an event in SE-CP against the size of blocks",
    ),
    "parallel-fig14": Experiment(
        "harken.bench.experiments.parallel_profile:run_fig14",
        "throughput of ME-IP against the number of subscriptions",
    ),
    "parallel-fig15": Experiment(
        "harken.bench.experiments.parallel_profile:run_fig15",
        "matching time of an event in SE-CP against the number of subscriptions",
    ),
    "parallel-arrow": Experiment(
        "harken.bench.experiments.parallel_scaling:run_arrow",
        "throughput of ME-IP against threads on w0, fed from Arrow",
    ),
    "parallel-heavy": Experiment(
        "harken.bench.experiments.parallel_scaling:run_heavy",
        "matching time of heavy events in SE-CP",
    ),
    "parallel-updates": Experiment(
        "harken.bench.experiments.parallel_updates:run",
        "throughput and the longest pause of matching while subscriptions come and go",
    ),
    "patterns": Experiment(
        "harken.bench.experiments.patterns:run",
        "subscriptions that look into texts or ask where a point lies, against asking each",
    ),
    "peers": Experiment(
        "harken.bench.experiments.peers:run",
        "workloads that other systems have been measured on, by the batch and one by one",
    ),
    "pubsub-fig7": Experiment(
        "harken.bench.experiments.pubsub_figures:run_bucket_size",
        "PUBSUB by bucket size and matching probability, beside the others (workload be-gen)",
    ),
    "pubsub-fig8": Experiment(
        "harken.bench.experiments.pubsub_figures:run_scaling",
        "matching time against the number of subscriptions, uniform and Zipf (workload be-gen)",
    ),
    "pubsub-fig9": Experiment(
        "harken.bench.experiments.pubsub_figures:run_dimensions",
        "matching time against the number of attributes, uniform and Zipf (workload be-gen)",
    ),
    "ranges": Experiment(
        "harken.bench.experiments.ranges:run",
        "range-only subscriptions against a compiled scan of all of them",
    ),
    "rapid-fig3": Experiment(
        "harken.bench.experiments.rapid_scaling:run_size",
        "search trees: matching time against the number of subscriptions (light queries)",
    ),
    "rapid-fig4": Experiment(
        "harken.bench.experiments.rapid_scaling:run_distribution",
        "search trees: matching time against how many properties events have",
    ),
    "rapid-fig5": Experiment(
        "harken.bench.experiments.rapid_per_match:run_zipf",
        "search trees: time per match against the number of matches, most events with few properties",
    ),
    "rapid-fig6": Experiment(
        "harken.bench.experiments.rapid_per_match:run_exponential",
        "search trees: time per match against the number of matches, each property with the same chance",
    ),
    "single-event": Experiment(
        "harken.bench.experiments.single_event:run",
        "how long one event takes that comes as a dictionary",
    ),
    "soak": Experiment(
        "harken.bench.experiments.soak:run",
        "random updates and matches for --minutes, each checked, and memory over time",
    ),
    "spark-compile": Experiment(
        "harken.bench.experiments.spark_compile:run",
        "texts to compiled files on Spark, two cores against one",
    ),
    "spark-join": Experiment(
        "harken.bench.experiments.spark_join:run",
        "matching on Spark against a join in Spark SQL",
    ),
    "spark-scale": Experiment(
        "harken.bench.experiments.spark_scale:run",
        "Parquet in and out on Spark, beside the ceiling that Spark sets; workers' memory and start",
    ),
    "spark-stream": Experiment(
        "harken.bench.experiments.spark_stream:run",
        "a stream with a trigger every second, and changes of subscriptions in it",
    ),
    "storage-stress": Experiment(
        "harken.bench.experiments.storage_stress:run",
        "processes that read, change, compact and vacuum one folder for --minutes: nothing is lost",
    ),
    "store-start": Experiment(
        "harken.bench.experiments.store_start:run",
        "a worker whose index lies in an object store: when it is ready, its cache empty and warm",
    ),
    "stream-age": Experiment(
        "harken.bench.experiments.stream_age:run",
        "a stream of thousands of small batches: whether late ones take longer",
    ),
    "stream-stress": Experiment(
        "harken.bench.experiments.stream_stress:run",
        "two streams and a batch job beside a writer, a compactor and a vacuum for --minutes: nothing is missing",
    ),
    "symmetric-fig4": Experiment(
        "harken.bench.experiments.symmetric_scaling:run_breakdown",
        "publications as constraints: one match, step by step, in memory and on databases",
    ),
    "symmetric-fig5": Experiment(
        "harken.bench.experiments.symmetric_scaling:run_scaling",
        "publications as constraints: a match against the number of subscriptions",
    ),
    "symmetric-fig6": Experiment(
        "harken.bench.experiments.symmetric_batching:run_cost",
        "publications in batches: the time a batch takes",
    ),
    "symmetric-fig7": Experiment(
        "harken.bench.experiments.symmetric_batching:run_throughput",
        "publications in batches: publications per second",
    ),
    "symmetric-encodings": Experiment(
        "harken.bench.experiments.symmetric_encodings:run",
        "two encodings of constraints on SQLite and PostgreSQL: our ranges and the paper's operators",
    ),
    "symmetric-faults": Experiment(
        "harken.bench.experiments.symmetric_faults:run",
        "changes of symmetric engines and auctions stopped at every line: all of a change, or nothing",
    ),
    "symmetric-penalty": Experiment(
        "harken.bench.experiments.symmetric_batching:run_penalty",
        "events as publications of single values, beside the classical engine",
    ),
    "threads": Experiment(
        "harken.bench.experiments.threads:run",
        "threads that match and threads that change one engine for --minutes, each match checked",
    ),
    "updates": Experiment(
        "harken.bench.experiments.updates:run",
        "subscriptions in and out of a full engine, in batches and one by one",
    ),
    "yardstick": Experiment(
        "harken.bench.experiments.yardstick:run",
        "the machine's limit: scattered cache lines read per second",
    ),
}


def experiments() -> dict[str, str]:
    """The names of all experiments, with a line about each."""
    return {name: experiment.summary for name, experiment in _EXPERIMENTS.items()}


def named(name: str) -> list[str]:
    """The experiments that a name stands for: itself, or all of a family ("spark" for "spark-join", ...)."""
    family = [each for each in _EXPERIMENTS if each.startswith(f"{name}-")]
    return [name] if name in _EXPERIMENTS or not family else family


def load(name: str) -> Callable[[Bench], Result]:
    """The function that runs an experiment."""
    if name not in _EXPERIMENTS:
        raise UnknownExperimentError(name, _EXPERIMENTS)
    module, _, attribute = _EXPERIMENTS[name].target.partition(":")
    function: Callable[[Bench], Result] = getattr(import_module(module), attribute)
    return function
