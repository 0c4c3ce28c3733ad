"""Figures of the contestants, and the tables that show them.

Rule: a ratio is taken within a round, between figures measured seconds apart, so other load affects both. The figure
shown is the median over the rounds, and the spread is the lowest and the highest. A ratio above 1 is better for us.
"""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.servers import OURS

Samples = Mapping[str, Sequence[float]]
"""One figure for each round, by contestant; what is better is lower."""

HEAD = ("measure", "server", "figure", "ratio to ours", "spread", "target")
MICRO, MILLI, MEGA = 1e6, 1e3, 1e6
THOUSAND = 1_000
LARGER = {"µs": "ms", "ms": "s"}
"""The unit of a thousand."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measured quantity of all contestants.

    Attributes:
        targets: the ratio that is wanted, by the name of a peer.
    """

    name: str
    unit: str
    samples: Samples
    targets: Mapping[str, float] = field(default_factory=dict)

    def lines(self) -> Iterator[tuple[str, ...]]:
        """Yield a line of the table for each contestant, ours first."""
        mine = self.samples[OURS]
        for name, theirs in self.samples.items():
            shown = figure(statistics.median(theirs), self.unit)
            if name == OURS:
                yield (self.name, name, shown, "", "", "")
                continue
            ratios = [their / our for our, their in zip(mine, theirs, strict=True)]
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            target = f"{self.targets[name]:g}" if name in self.targets else ""
            yield ("", name, shown, f"{statistics.median(ratios):.2f}", spread, target)


def figure(value: float, unit: str) -> str:
    """Return a number with three digits and its unit."""
    if unit in LARGER and value >= THOUSAND:
        return figure(value / THOUSAND, LARGER[unit])
    return f"{value:.3g} {unit}"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def measure_table(measures: Iterable[Measure]) -> str:
    """Return the table of all measures."""
    return table(HEAD, (line for measure in measures for line in measure.lines()))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of all values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
