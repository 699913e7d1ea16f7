"""Measuring: contenders take turns, so that the machine's moods hit all alike; ratios come with a verdict."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

Scale = Literal["small", "full"]
Picked = TypeVar("Picked")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity with all its repeats; `target` is the least (or most) that was asked for."""

    name: str
    unit: str
    samples: tuple[float, ...]
    target: float | None = None
    lower_is_better: bool = False

    @property
    def median(self) -> float:
        """The middle of the repeats."""
        return statistics.median(self.samples)

    @property
    def reached(self) -> bool | None:
        """Whether the median meets the target; None without one."""
        if self.target is None:
            return None
        return self.median <= self.target if self.lower_is_better else self.median >= self.target

    def to_dict(self) -> dict[str, object]:
        """The figure as plain data."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "samples": list(self.samples),
            "target": self.target,
            "lower_is_better": self.lower_is_better,
            "reached": self.reached,
        }


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times one quantity is another, repeat by repeat of the same run."""

    name: str
    samples: tuple[float, ...]
    target: float | None = None

    @classmethod
    def of(cls, name: str, above: Figure, below: Figure, target: float | None = None) -> Ratio:
        """The ratio of two figures measured in turns."""
        pairs = zip(above.samples, below.samples, strict=True)
        return cls(name, tuple(one / other for one, other in pairs), target)

    @property
    def median(self) -> float:
        """The middle of the repeats."""
        return statistics.median(self.samples)

    @property
    def verdict(self) -> str:
        """Whether the repeats agree on which of the two is ahead."""
        if len(self.samples) < 3:
            return "too few repeats"
        if min(self.samples) > 1:
            return "ahead in every repeat"
        return "behind in every repeat" if max(self.samples) < 1 else "within noise"

    @property
    def reached(self) -> bool | None:
        """Whether the median meets the target; None without one."""
        return None if self.target is None else self.median >= self.target

    def to_dict(self) -> dict[str, object]:
        """The ratio as plain data."""
        return {
            "name": self.name,
            "median": self.median,
            "low": min(self.samples),
            "high": max(self.samples),
            "verdict": self.verdict,
            "target": self.target,
            "reached": self.reached,
        }


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a plot; or points, above names."""

    label: str
    x: tuple[float, ...] | tuple[str, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """What to draw: curves over a common axis."""

    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(slots=True)
class Result:
    """What an experiment found."""

    title: str
    conditions: Mapping[str, object]
    figures: list[Figure] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    plot: Plot | None = None
    paper: str = ""
    """What the paper reports for the same experiment, if there is one."""
    notes: list[str] = field(default_factory=list)


class Progress(Protocol):
    """Something that shows how far long work has come."""

    def step(self, label: str, total: int | None = None) -> AbstractContextManager[Callable[[int], None]]:
        """Begin a piece of work; the function given is told how much of it is done."""


class NoProgress:
    """Shows nothing."""

    @contextmanager
    def step(self, label: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Begin a piece of work that nobody watches."""
        yield lambda done: None


def timed(work: Callable[[], object]) -> float:
    """How many seconds some work takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


@dataclass(frozen=True, slots=True)
class Bench:
    """How to run an experiment: how large, how often, and who watches."""

    scale: Scale = "small"
    repeats: int = 3
    seed: int = 20_001
    progress: Progress = field(default_factory=NoProgress)
    minutes: float | None = None
    """How long to go on, for what has no end of its own; None leaves it to the scale."""

    def pick(self, small: Picked, full: Picked) -> Picked:
        """A size, or sizes, by scale."""
        return small if self.scale == "small" else full

    def target(self, asked: float) -> float | None:
        """What was asked for, at the scale it was asked for."""
        return self.pick(None, asked)

    def in_turns(
        self, contenders: Mapping[str, Callable[[], object]], label: str = "measuring"
    ) -> dict[str, tuple[float, ...]]:
        """Seconds for each contender, repeat by repeat, all taking turns within a repeat."""
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        with self.progress.step(label, self.repeats * len(contenders)) as done:
            for turn in range(self.repeats):
                for at, (name, work) in enumerate(contenders.items()):
                    seconds[name].append(timed(work))
                    done(turn * len(contenders) + at + 1)
        return {name: tuple(samples) for name, samples in seconds.items()}
