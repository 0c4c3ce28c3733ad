"""Ratios of samples, and the table of ratios.

Rule: a ratio is taken within a round, between figures measured seconds apart, so other load affects both.
The figure shown is the median over rounds, and the spread is the lowest and the highest. Above 1 is better for us.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Samples = Mapping[str, Sequence[float]]
"""One figure per round, for each contestant; what is better is lower."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    measure: str
    unit: str
    ours: float
    peer: str
    theirs: float
    ratios: tuple[float, ...]
    goal: float | None

    @property
    def ratio(self) -> float:
        """Their figure by ours, the median of the rounds."""
        return statistics.median(self.ratios)

    @property
    def verdict(self) -> str:
        """Return "reached" or "missed", by every round or by the median."""
        if self.goal is None:
            return ""
        verdict = "reached" if self.ratio >= self.goal else "missed"
        return verdict if min(self.ratios) >= self.goal or max(self.ratios) < self.goal else f"{verdict} by its median"

    def cells(self) -> tuple[str, ...]:
        """Return the line as text. There is no ratio if the peer did not answer."""
        most = f" to {max(self.ratios):.2f}" if math.isfinite(max(self.ratios)) else " and more"
        ratio, spread = f"{self.ratio:.2f}", f"{min(self.ratios):.2f}{most}"
        goal = "" if self.goal is None else f"{self.goal:g}"
        figures = (figure(self.ours, self.unit), self.peer, figure(self.theirs, self.unit))
        return (
            self.measure,
            *figures,
            *((ratio, spread) if math.isfinite(self.ratio) else ("", "")),
            goal,
            self.verdict,
        )


LARGER = {"µs": "ms", "ms": "s"}
"""The unit of a thousand."""


def figure(value: float, unit: str) -> str:
    """Return a number with three digits and its unit."""
    if math.isinf(value):
        return "none came"
    if value >= 999.5 and unit in LARGER:  # noqa: PLR2004 - what would be written as a thousand
        return figure(value / 1_000, LARGER[unit])
    return f"{value:.3g} {unit}"


HEAD = ("measure", "ours", "peer", "theirs", "ratio", "spread", "goal", "")


def compare(measure: str, unit: str, samples: Samples, goals: Mapping[str, float] | None = None) -> list[Row]:
    """Return a row for each peer with its cost as a multiple of ours."""
    mine = samples["ours"]
    return [
        Row(
            measure,
            unit,
            statistics.median(mine),
            name,
            statistics.median(theirs),
            tuple(their / our for our, their in zip(mine, theirs, strict=True)),
            (goals or {}).get(name),
        )
        for name, theirs in samples.items()
        if name != "ours"
    ]


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Markdown, with columns that also line up in a terminal."""
    rows = [head, *lines]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    padded.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of all values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
