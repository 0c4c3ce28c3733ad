"""The store over AgentCore Memory: the parts of the store in memory, plus reads and writes of the service.

Rule: only methods that begin, end, show, change or delete a conversation are defined here. All others are those of the
store in memory.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from agui_container.ports.records import (
    AlreadyExists,
    Claim,
    Claimed,
    Ending,
    Feedback,
    Page,
    RunKey,
    StoreWarning,
    ThreadBusy,
    ThreadKey,
    ThreadRecord,
)
from agui_container.ports.store import PAGE, Fork
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.agentcore.histories import ThreadHistories
from agui_container.stores.agentcore.interrupts import AgentCoreInterrupts
from agui_container.stores.agentcore.service import CALL_SECONDS, MEMORY_ID, MemoryService
from agui_container.stores.memory import MemoryStore
from agui_container.stores.memory.data import Bounds, MemoryData
from agui_container.stores.memory.runs import MemoryRuns
from agui_container.stores.memory.threads import MemoryFeedbacks, MemoryThreads

P = ParamSpec("P")
T = TypeVar("T")


class AgentCoreThreads:
    """``ThreadStore`` that reads a thread from the service if it is not in memory."""

    def __init__(self, memory: MemoryThreads, histories: ThreadHistories) -> None:
        self._memory = memory
        self._histories = histories
        self.get = self._after_load(memory.get)
        self.changes = self._after_load(memory.changes)
        self.has_messages = self._after_load(memory.has_messages)
        self.message = self._after_load(memory.message)
        self.messages = self._after_load(memory.messages)

    def _after_load(
        self, read: Callable[Concatenate[ThreadKey, P], Awaitable[T]]
    ) -> Callable[Concatenate[ThreadKey, P], Coroutine[object, object, T]]:
        """Return a function that reads in memory, after reading the thread from the service if it is not there."""

        async def load_and_read(key: ThreadKey, /, *args: P.args, **kwargs: P.kwargs) -> T:
            await self._histories.load_if_absent(key)
            return await read(key, *args, **kwargs)

        return load_and_read

    async def list(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        """List a page of an owner's threads. The first page reads the threads that are not in memory."""
        if page is None:
            await self._histories.load_missing(owner)
        return await self._memory.list(owner, limit=limit, page=page)

    async def rename(self, key: ThreadKey, title: str | None, now: float) -> bool:
        """Set the title of a thread and write it to the service."""
        await self._histories.load_if_absent(key)
        exists = await self._memory.rename(key, title, now)
        if exists:
            await self._histories.write_turn(key, now, conversational=True)
        return exists

    async def annotate(self, key: ThreadKey, notes: Mapping[str, object]) -> bool:
        """Merge notes into the metadata of a thread and write it to the service."""
        await self._histories.load_if_absent(key)
        exists = await self._memory.annotate(key, notes)
        record = await self._memory.get(key)
        if record is not None:
            await self._histories.write_turn(key, record.changed_at, conversational=False)
        return exists

    async def fork(self, fork: Fork) -> ThreadRecord:
        """Create a thread with the history up to and including a message, and write it to the service."""
        await self._histories.load_if_absent(fork.source)
        await self._histories.load_if_absent(fork.key)
        record = await self._memory.fork(fork)
        await self._histories.write_turn(fork.key, fork.created_at, conversational=False)
        return record

    async def delete(self, key: ThreadKey) -> bool:
        """Delete a thread and its events."""
        return await self._histories.remove(key)


class AgentCoreRuns(MemoryRuns):
    """``RunStore`` in memory. A claim reads the thread from the service, and the end of a run writes the turn."""

    def __init__(self, data: MemoryData, histories: ThreadHistories) -> None:
        super().__init__(data)
        self._histories = histories

    async def claim(self, claim: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        """Create the run as active, after reading the history of its thread. A failed read becomes a warning."""
        await self._histories.load_for_run(claim.key.thread)
        return await super().claim(claim)

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """End the run, then write the turn to the service. A failed write becomes a warning."""
        await super().finish(run, replica, envelopes, ending)
        await self._histories.write_turn(run.thread, ending.ended_at, run.run_id, conversational=True)


class AgentCoreFeedbacks(MemoryFeedbacks):
    """``FeedbackStore`` in memory. The thread of a new feedback is read first if necessary."""

    def __init__(self, data: MemoryData, histories: ThreadHistories) -> None:
        super().__init__(data)
        self._histories = histories

    async def put(self, thread: ThreadKey, feedback: Feedback) -> Feedback | None:
        """Store feedback on a message. Return None if there is no such message."""
        await self._histories.load_if_absent(thread)
        return await super().put(thread, feedback)


class AgentCoreStore:
    """A ``Store`` whose messages and pending interrupts survive the process. Runs, goals and feedback do not.

    Args:
        memory_id: id or ARN of the memory.
        bounds: limits of the data in memory. An evicted thread is read again when it is needed.
        call_seconds: limit of one call of the service, in seconds.

    Raises:
        ValueError: ``memory_id`` is not the id or ARN of a memory.
    """

    def __init__(self, memory_id: str, bounds: Bounds | None = None, call_seconds: float = CALL_SECONDS) -> None:
        if not MEMORY_ID.fullmatch(memory_id):
            raise ValueError("not the id of a memory")
        memory = MemoryStore(bounds)
        self._service = MemoryService(memory_id, call_seconds)
        self._histories = ThreadHistories(memory.threads, memory.interrupts, self._service)
        self.runs = AgentCoreRuns(memory.data, self._histories)
        self.threads = AgentCoreThreads(memory.threads, self._histories)
        self.goals = memory.goals
        self.interrupts = AgentCoreInterrupts(memory.interrupts, self._histories, self._service)
        self.feedbacks = AgentCoreFeedbacks(memory.data, self._histories)

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:
        """Return failed reads and writes of a thread since the last call."""
        return self._histories.warnings(thread)

    async def open(self) -> None:
        """Do nothing. The service is first called when it is needed, so its outage does not prevent the start."""

    async def aclose(self) -> None:
        """Close idle connections. No writes are pending, because turns are written when they end."""
        self._service.close()
