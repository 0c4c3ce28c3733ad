"""Runs in groups, so that a search takes no look at those of other callers and threads."""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from agui_container.engine.run.run import Run
from agui_container.ports.records import RunKey

G = TypeVar("G", bound=Hashable)


class RunGroups(Generic[G]):
    """Runs by group, in the order in which they were added.

    Args:
        group_of: returns the group of a run.
    """

    def __init__(self, group_of: Callable[[RunKey], G]) -> None:
        self._group_of = group_of
        self._groups: dict[G, dict[RunKey, Run]] = {}

    def add(self, run: Run) -> None:
        """Add a run to its group, as the newest one."""
        self._groups.setdefault(self._group_of(run.key), {})[run.key] = run

    def remove(self, run: Run) -> None:
        """Remove a run from its group."""
        group = self._group_of(run.key)
        runs = self._groups[group]
        del runs[run.key]
        if not runs:
            del self._groups[group]

    def newest_first(self, group: G) -> Iterator[Run]:
        """Iterate the runs of a group, the newest one first. Nothing may change meanwhile."""
        return reversed(self._groups.get(group, {}).values())
