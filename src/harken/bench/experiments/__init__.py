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
    "compile": Experiment(
        "harken.bench.experiments.compiling:run",
        "text to compiled form: shared shapes, many shapes, all-distinct texts",
    ),
    "fabret-fig3a": Experiment(
        "harken.bench.experiments.fabret_scaling:run",
        "matching time against the number of subscriptions, all cluster algorithms (workload w0)",
    ),
    "yardstick": Experiment(
        "harken.bench.experiments.yardstick:run",
        "the machine's limit: scattered cache lines read per second",
    ),
}


def experiments() -> dict[str, str]:
    """The names of all experiments, with a line about each."""
    return {name: experiment.summary for name, experiment in _EXPERIMENTS.items()}


def load(name: str) -> Callable[[Bench], Result]:
    """The function that runs an experiment."""
    if name not in _EXPERIMENTS:
        raise UnknownExperimentError(name, _EXPERIMENTS)
    module, _, attribute = _EXPERIMENTS[name].target.partition(":")
    function: Callable[[Bench], Result] = getattr(import_module(module), attribute)
    return function
