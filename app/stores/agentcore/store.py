"""The store whose messages are in AgentCore Memory: memory's parts, and the histories beside them."""

from collections.abc import Sequence

from app.ports.conversation import Lapse
from app.ports.records import ThreadKey
from app.stores.agentcore.histories import Histories
from app.stores.agentcore.names import MEMORY_ID
from app.stores.agentcore.parts import AgentCoreFeedbacks, AgentCoreRuns, AgentCoreThreads
from app.stores.agentcore.service import CALL_SECONDS, Service
from app.stores.memory.contents import Bounds
from app.stores.memory.store import MemoryStore


class AgentCoreStore:
    """A ``Store`` whose messages outlive the process; runs, interrupts, goals and feedback end with it.

    Args:
        memory_id: the memory's id or ARN.
        bounds: what is kept in memory at most. A thread that has to go from there is read again.
        call_seconds: what one call of the service may take.

    Raises:
        ValueError: that is no id of a memory.
    """

    def __init__(self, memory_id: str, bounds: Bounds | None = None, call_seconds: float = CALL_SECONDS) -> None:
        if not MEMORY_ID.fullmatch(memory_id):
            raise ValueError("not the id of a memory")
        memory = MemoryStore(bounds)
        self._service = Service(memory_id, call_seconds)
        self._histories = Histories(memory.threads, self._service)
        self.runs = AgentCoreRuns(memory.runs, self._histories)
        self.threads = AgentCoreThreads(memory.threads, self._histories)
        self.goals = memory.goals
        self.interrupts = memory.interrupts
        self.feedbacks = AgentCoreFeedbacks(memory.feedbacks, self._histories)

    def lapses(self, thread: ThreadKey) -> Sequence[Lapse]:
        """What was not read or written of a thread."""
        return self._histories.lapses(thread)

    async def open(self) -> None:
        """Nothing is asked before somebody needs it: a memory that is down does not stop the start."""

    async def aclose(self) -> None:
        """Let go of connections. Every turn that could be written is."""
        self._service.close()
