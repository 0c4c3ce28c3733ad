"""Threads and runs over memory, where their messages are read from AgentCore Memory and written to it.

Rule: only what begins, ends, shows or removes a conversation is here; all else is memory's own.

The store whose messages are in AgentCore Memory: memory's parts, and the histories beside them.
"""

from collections.abc import Mapping, Sequence

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
    ThreadDelta,
    ThreadKey,
    ThreadRecord,
    ThreadStatus,
)
from agui_container.ports.store import PAGE
from agui_container.protocol.wire.envelope import Envelope
from agui_container.stores.agentcore.histories import ThreadHistories
from agui_container.stores.agentcore.identifiers import MEMORY_ID
from agui_container.stores.agentcore.service import CALL_SECONDS, MemoryService
from agui_container.stores.memory.data import Bounds
from agui_container.stores.memory.runs import MemoryRuns
from agui_container.stores.memory.store import MemoryStore
from agui_container.stores.memory.threads import MemoryFeedbacks, MemoryThreads


class AgentCoreThreads:
    """``Threads``: those that are not here are read first."""

    def __init__(self, here: MemoryThreads, histories: ThreadHistories) -> None:
        self._here = here
        self._histories = histories

    async def get(self, key: ThreadKey) -> ThreadRecord | None:
        """A thread's facts."""
        await self._histories.load_if_absent(key)
        return await self._here.get(key)

    async def list(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        """An owner's threads; with the first page, those that are not here are read."""
        if page is None:
            await self._histories.find(owner)
        return await self._here.list(owner, limit=limit, page=page)

    async def changes(self, key: ThreadKey, since: str | None = None, *, messages: bool = True) -> ThreadDelta | None:
        """What a thread has become since a token."""
        await self._histories.load_if_absent(key)
        return await self._here.changes(key, since, messages=messages)

    async def rename(self, key: ThreadKey, title: str | None, now: float) -> bool:
        """Give a thread a title, which is written at once."""
        await self._histories.load_if_absent(key)
        known = await self._here.rename(key, title, now)
        if known:
            await self._histories.keep(key, now, spoken=True)
        return known

    async def annotate(self, key: ThreadKey, notes: Mapping[str, object]) -> bool:
        """Put notes into a thread's metadata, which is written at once."""
        await self._histories.load_if_absent(key)
        known = await self._here.annotate(key, notes)
        record = await self._here.get(key)
        if record is not None:
            await self._histories.keep(key, record.changed_at, spoken=False)
        return known

    async def fork(
        self,
        source: ThreadKey,
        message_id: str,
        thread_id: str,
        now: float,
        turn: ThreadStatus = ThreadStatus.USER_TURN,
    ) -> ThreadRecord:
        """A new thread with the history up to and including a message, which is written at once."""
        await self._histories.load_if_absent(source)
        await self._histories.load_if_absent(ThreadKey(source.owner, thread_id))
        fork = await self._here.fork(source, message_id, thread_id, now, turn)
        await self._histories.keep(fork.key, now, spoken=False)
        return fork

    async def delete(self, key: ThreadKey) -> bool:
        """Remove a thread and its events."""
        return await self._histories.remove(key)


class AgentCoreRuns:
    """``Runs``: in memory, but for what their beginning reads and their end writes."""

    def __init__(self, here: MemoryRuns, histories: ThreadHistories) -> None:
        self._here = here
        self._histories = histories
        self.append = here.append
        self.change = here.change
        self.envelopes = here.envelopes
        self.get = here.get
        self.latest = here.latest
        self.find_by_run_id = here.find_by_run_id
        self.list = here.list
        self.renew = here.renew
        self.report_progress = here.report_progress
        self.request_cancel = here.request_cancel
        self.expired = here.expired
        self.take_over = here.take_over
        self.forget = here.forget

    async def claim(self, claim: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        """Make the run active, with the thread's history as far as it can be read."""
        await self._histories.begin(claim.key.thread)
        return await self._here.claim(claim)

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """End the run, which frees its thread, and write the turn as far as that can be done."""
        await self._here.finish(run, replica, envelopes, ending)
        await self._histories.keep(run.thread, ending.ended_at, run.run_id, spoken=True)


class AgentCoreFeedbacks:
    """``FeedbackStore``: in memory, of messages that may have to be read first."""

    def __init__(self, here: MemoryFeedbacks, histories: ThreadHistories) -> None:
        self._here = here
        self._histories = histories
        self.list_for = here.list_for
        self.reviews = here.reviews
        self.triage = here.triage

    async def put(self, thread: ThreadKey, feedback: Feedback) -> Feedback | None:
        """Store a feedback."""
        await self._histories.load_if_absent(thread)
        return await self._here.put(thread, feedback)


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
        self._service = MemoryService(memory_id, call_seconds)
        self._histories = ThreadHistories(memory.threads, self._service)
        self.runs = AgentCoreRuns(memory.runs, self._histories)
        self.threads = AgentCoreThreads(memory.threads, self._histories)
        self.goals = memory.goals
        self.interrupts = memory.interrupts
        self.feedbacks = AgentCoreFeedbacks(memory.feedbacks, self._histories)

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:
        """What was not read or written of a thread."""
        return self._histories.warnings(thread)

    async def open(self) -> None:
        """Nothing is asked before somebody needs it: a memory that is down does not stop the start."""

    async def aclose(self) -> None:
        """Let go of connections. Every turn that could be written is."""
        self._service.close()
