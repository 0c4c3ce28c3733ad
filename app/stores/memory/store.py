"""The store in memory: its parts on the same contents."""

from collections.abc import Sequence

from app.interrupts import MemoryInterrupts
from app.ports.conversation import Lapse
from app.ports.records import ThreadKey
from app.stores.memory.contents import Bounds, Contents
from app.stores.memory.feedback import MemoryFeedbacks
from app.stores.memory.runs import MemoryRuns
from app.stores.memory.threads import MemoryGoals, MemoryThreads


class MemoryStore:
    """A ``Store`` that ends with its process.

    Args:
        bounds: what is kept at most.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        contents = Contents(bounds or Bounds())
        self.interrupts = MemoryInterrupts()
        self.runs = MemoryRuns(contents)
        self.threads = MemoryThreads(contents, self.interrupts.remove)
        self.goals = MemoryGoals(contents)
        self.feedbacks = MemoryFeedbacks(contents)

    def lapses(self, thread: ThreadKey) -> Sequence[Lapse]:  # noqa: ARG002 - as in the port
        """None: what cannot be done fails."""
        return ()

    async def open(self) -> None:
        """There is nothing to open."""

    async def aclose(self) -> None:
        """There is nothing to close."""
