"""The store in the memory of one process.

Rule: no method awaits anything, so each call is atomic on the event loop. The amount of data is bounded.
"""

from collections.abc import Sequence

from agui_container.ports.records import StoreWarning, ThreadKey
from agui_container.runtime.memory_interrupts import MemoryInterrupts
from agui_container.stores.memory.data import Bounds, MemoryData
from agui_container.stores.memory.runs import MemoryRuns
from agui_container.stores.memory.threads import MemoryFeedbacks, MemoryGoals, MemoryThreads


class MemoryStore:
    """A ``Store`` whose data ends with the process.

    Args:
        bounds: limits of the data.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        bounds = bounds or Bounds()
        self.data = data = MemoryData(bounds)
        self.interrupts = MemoryInterrupts(bounds.interrupt_bytes, bounds.interrupts)
        self.runs = MemoryRuns(data)
        self.threads = MemoryThreads(data, self.interrupts.remove)
        self.goals = MemoryGoals(data)
        self.feedbacks = MemoryFeedbacks(data)

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:  # noqa: ARG002 - as in the port
        """Return nothing, because a failed call raises."""
        return ()

    async def open(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""


__all__ = ["MemoryStore"]
