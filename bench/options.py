"""Sizes of a measurement, and its result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.results import Row


@dataclass(frozen=True, slots=True)
class Options:
    """Sizes of a whole run, or of a quick one that only shows that everything works."""

    rounds: int = 7
    seconds: float = 1.0
    streams: int = 500
    paced_rounds: int = 5
    paced_seconds: float = 8.0
    abreast_rounds: int = 4
    sockets: int = 1_900
    starts: int = 9
    probes: int = 100
    load_rounds: int = 3
    calls: int = 200
    messages: int = 100_000
    growth: float = 1.0


QUICK = Options(
    rounds=2,
    seconds=0.3,
    streams=60,
    paced_rounds=1,
    paced_seconds=2.0,
    abreast_rounds=1,
    sockets=100,
    starts=2,
    probes=15,
    load_rounds=1,
    calls=20,
    messages=5_000,
    growth=0.1,
)


class MeasureError(Exception):
    """A contestant did not deliver the whole run, so there is nothing to compare."""


@dataclass(frozen=True, slots=True)
class Extra:
    """A separate table for figures that are not ratios to a peer."""

    title: str
    head: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Section:
    """The result of one scenario."""

    rows: list[Row] = field(default_factory=list)
    extras: list[Extra] = field(default_factory=list)


Scenario = Callable[[Options], Section]
