"""The store over AgentCore Memory: the store in memory, plus reads and writes of the service.

Rule: only methods that begin, end, show, change or delete a conversation are defined here. All others are those of the
store in memory.
"""

import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from agui_container.ports.records import (
    Begun,
    Busy,
    Claim,
    DayTokens,
    Ending,
    Exists,
    Page,
    RunKey,
    RunRecord,
    StoredMessage,
    StoreWarning,
    ThreadDelta,
    ThreadKey,
    ThreadNote,
    ThreadRecord,
)
from agui_container.ports.store import PAGE, Delete, Fork, Merge, Rename, StoreUnavailable
from agui_container.protocol.envelope import Envelope
from agui_container.stores.agentcore.histories import ThreadHistories
from agui_container.stores.agentcore.service import CALL_SECONDS, MEMORY_ID, MemoryService
from agui_container.stores.memory import MemoryStore


class AgentCoreStore:
    """A ``Store`` whose threads survive the process. Runs do not. An evicted thread is read again when it is needed.

    Raises:
        ValueError: ``memory_id`` is not the id or ARN of a memory.
    """

    writes_turns = True

    def __init__(
        self,
        memory_id: str,
        call_seconds: float = CALL_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not MEMORY_ID.fullmatch(memory_id):
            raise ValueError("not the id of a memory")
        self._now = now
        self._memory = memory = MemoryStore(now)
        self._service = MemoryService(memory_id, call_seconds)
        self._histories = ThreadHistories(memory, self._service)
        self.run = memory.run

    def take_warnings(self, thread: ThreadKey) -> Sequence[StoreWarning]:
        return self._histories.warnings(thread)

    async def open(self) -> None:
        """Do nothing. The service is first called when it is needed, so its outage does not prevent the start."""

    async def aclose(self) -> None:
        """Close idle connections. No writes are pending, because turns are written when they end."""
        self._service.close()

    # --- runs ---

    async def enqueue(self, claim: Claim) -> RunRecord | None:
        await self._histories.load_for_run(claim.key.thread)
        return await self._memory.enqueue(claim)

    async def begin(self, claim: Claim, merge: Merge) -> Begun | Exists | Busy:
        await self._histories.load_for_run(claim.key.thread)
        answer = await self._memory.begin(claim, merge)
        return replace(answer, warnings=self.take_warnings(claim.key.thread)) if isinstance(answer, Begun) else answer

    async def finish(self, run: RunKey, replica: str, envelopes: Sequence[Envelope], ending: Ending) -> None:
        """End the run, then write the turn to the service. A failed write becomes a warning."""
        await self._memory.finish(run, replica, envelopes, ending)
        await self._histories.write_turn(run.thread)
        if ending.tokens:
            await self._service.add_tokens(run, ending, self._now())

    async def tokens(self, owner: str) -> DayTokens:
        now = self._now()
        return DayTokens(await self._service.tokens(owner, now), now)

    # --- threads ---

    async def thread(
        self, key: ThreadKey, since: str | None = None, *, messages: bool = True, notes: Sequence[str] = ()
    ) -> ThreadDelta | None:
        """Read a thread first that is not in memory, as all methods below do."""
        await self._histories.load_if_absent(key)
        return await self._memory.thread(key, since, messages=messages, notes=notes)

    async def messages(
        self, key: ThreadKey, *, limit: int = PAGE, before: str | None = None, last: str | None = None
    ) -> Page[StoredMessage] | None:
        await self._histories.load_if_absent(key)
        return await self._memory.messages(key, limit=limit, before=before, last=last)

    async def threads(self, owner: str, *, limit: int = PAGE, page: str | None = None) -> Page[ThreadRecord]:
        """Return a page of threads. The first page reads the threads that are not in memory."""
        if page is None:
            await self._histories.load_missing(owner)
        return await self._memory.threads(owner, limit=limit, page=page)

    async def edit(self, key: ThreadKey, edit: Rename | Fork | Delete) -> ThreadRecord | None:
        await self._histories.load_if_absent(key)
        if isinstance(edit, Delete):
            return await self._histories.remove(key)
        if isinstance(edit, Fork):
            await self._histories.load_if_absent(ThreadKey(key.owner, edit.thread_id))
        record = await self._memory.edit(key, edit)
        if record is not None:
            await self._histories.write_turn(record.key, conversational=not isinstance(edit, Fork))
        return record

    # --- notes ---

    async def notes(self, thread: ThreadKey, *kinds: str) -> Sequence[ThreadNote]:
        await self._histories.load_if_absent(thread)
        return await self._memory.notes(thread, *kinds)

    async def put_notes(self, thread: ThreadKey, notes: Sequence[ThreadNote]) -> bool:
        """Store notes. Those that are not settled are written with the end of the thread's active run.

        A settled note is the outcome of a call. A failed write of it raises, so that it is repeated.
        """
        await self._histories.load_if_absent(thread)
        if not await self._memory.put_notes(thread, notes):
            return False
        stored = await self._memory.thread(thread, messages=False)
        if any(note.is_settled for note in notes):
            await self._histories.write(thread)
        elif stored is not None and stored.thread.active_run is None:
            await self._histories.write_turn(thread)
        return True

    async def settle_note(self, thread: ThreadKey, note: ThreadNote) -> bool:
        """Settle a note, and write the answer to the service.

        One process at a time has a session, as AgentCore guarantees, so its memory decides between answers. A process
        that dies while a call runs leaves a claimed call, and the next process does not run it again.

        Raises:
            StoreUnavailable: the answer could not be written, and the note is not settled.
        """
        before = [it for it in await self.notes(thread, note.kind) if it.id == note.id]
        if not await self._memory.settle_note(thread, note):
            return False
        try:
            await self._histories.write(thread)
        except StoreUnavailable:
            await self._memory.put_notes(thread, before)
            raise
        return True
