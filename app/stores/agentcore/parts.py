"""Threads and runs over memory, where their messages are read from AgentCore Memory and written to it.

Rule: only what begins, ends, shows or removes a conversation is here; all else is memory's own.
"""

from collections.abc import Mapping, Sequence

from app.core.wire import Envelope
from app.ports.conversation import Delta, Ending, Feedback, ThreadRecord, ThreadStatus
from app.ports.records import Busy, Claim, Claimed, Known, Page, RunKey, ThreadKey
from app.ports.store import PAGE
from app.stores.agentcore.histories import Histories
from app.stores.memory.feedback import MemoryFeedbacks
from app.stores.memory.runs import MemoryRuns
from app.stores.memory.threads import MemoryThreads


class AgentCoreThreads:
    """``Threads``: those that are not here are read first."""

    def __init__(self, here: MemoryThreads, histories: Histories) -> None:
        self._here = here
        self._histories = histories

    async def get(self, key: ThreadKey) -> ThreadRecord | None:
        """A thread's facts."""
        await self._histories.look(key)
        return await self._here.get(key)

    async def list(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        """An owner's threads; with the first page, those that are not here are read."""
        if page is None:
            await self._histories.find(owner)
        return await self._here.list(owner, limit=limit, page=page)

    async def changes(self, key: ThreadKey, since: str | None = None, *, messages: bool = True) -> Delta | None:
        """What a thread has become since a token."""
        await self._histories.look(key)
        return await self._here.changes(key, since, messages=messages)

    async def rename(self, key: ThreadKey, title: str | None, now: float) -> bool:
        """Give a thread a title, which is written at once."""
        await self._histories.look(key)
        known = await self._here.rename(key, title, now)
        if known:
            await self._histories.keep(key, now, spoken=True)
        return known

    async def annotate(self, key: ThreadKey, notes: Mapping[str, object]) -> bool:
        """Put notes into a thread's metadata, which is written at once."""
        await self._histories.look(key)
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
        await self._histories.look(source)
        await self._histories.look(ThreadKey(source.owner, thread_id))
        fork = await self._here.fork(source, message_id, thread_id, now, turn)
        await self._histories.keep(fork.key, now, spoken=False)
        return fork

    async def delete(self, key: ThreadKey) -> bool:
        """Remove a thread and its events."""
        return await self._histories.remove(key)


class AgentCoreRuns:
    """``Runs``: in memory, but for what their beginning reads and their end writes."""

    def __init__(self, here: MemoryRuns, histories: Histories) -> None:
        self._here = here
        self._histories = histories
        self.append = here.append
        self.change = here.change
        self.envelopes = here.envelopes
        self.get = here.get
        self.latest = here.latest
        self.named = here.named
        self.list = here.list
        self.renew = here.renew
        self.note = here.note
        self.unwant = here.unwant
        self.expired = here.expired
        self.take_over = here.take_over
        self.forget = here.forget

    async def claim(self, claim: Claim) -> Claimed | Known | Busy:
        """Make the run active, with the thread's history as far as it can be read."""
        await self._histories.begin(claim.key.thread)
        return await self._here.claim(claim)

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """End the run, which frees its thread, and write the turn as far as that can be done."""
        await self._here.finish(run, replica, envelopes, ending)
        await self._histories.keep(run.thread, ending.ended_at, run.run_id, spoken=True)


class AgentCoreFeedbacks:
    """``Feedbacks``: in memory, of messages that may have to be read first."""

    def __init__(self, here: MemoryFeedbacks, histories: Histories) -> None:
        self._here = here
        self._histories = histories
        self.of = here.of
        self.reviews = here.reviews
        self.triage = here.triage

    async def give(self, thread: ThreadKey, feedback: Feedback) -> Feedback | None:
        """Store a feedback."""
        await self._histories.look(thread)
        return await self._here.give(thread, feedback)
