"""The sessions of a server as clients see them, and the answers that wait for something new.

Rule: a session is the thread that is stored and what has come of its active run. A turn is over when its end is stored,
so that nothing which was shown is missing for a moment.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import anyio.to_thread
from ag_ui.core import Message as AguiMessage
from ag_ui.core import UserMessage

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import ThreadDelta, ThreadKey, ThreadRecord, ThreadStatus
from agui_container.protocol.commands import ThreadsGet
from agui_container.protocol.conversation.merge import MESSAGE
from agui_container.protocol.errors import AppError
from agui_container.transports.roboto.messages import Active, shown, unanswered
from agui_container.transports.roboto.notes import Failure, MessageNotes, Notes, written
from agui_container.transports.roboto.position import NOTHING, Position
from agui_container.transports.roboto.records import JSON, View, delta_record, goal_records, unchanged_record
from agui_container.transports.roboto.turn import Turn

HOLD_SECONDS = 20.0
"""How long a delta is held back while nothing has changed. Clients wait for 30 s."""

POLLING_SECONDS = 2.0
"""A client that asks again so soon after it was told that nothing has changed is polling, and is made to wait."""

LOOK_SECONDS = 2.0
"""How often a session where no run is active is looked at for the sake of clients that wait."""

END_SECONDS = 5.0
END_LOOK_SECONDS = 0.01
"""How long the end of a run may be on its way to the store, and how often that is looked at."""

LARGE_BYTES = 100_000
"""Messages above this are read in a thread."""

ASKING = "Waiting for an answer through another protocol: {calls}"

logger = logging.getLogger(__name__)


class Views:
    """The sessions over one engine. ``aclose`` ends what is read of them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turns: dict[ThreadKey, Turn] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: dict[ThreadKey, set[asyncio.Event]] = {}

    async def aclose(self) -> None:
        """Stop reading runs. The engine ends them, or has ended them."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- deltas ---

    async def delta(
        self, caller: Caller, thread_id: str, token: str | None, *, knows_reset: bool, with_context: bool
    ) -> JSON:
        """Return what is new behind a token. While nothing is, wait for it, for ``HOLD_SECONDS`` at most."""
        position = Position.parse(token) if token else NOTHING
        key, loop = ThreadKey(caller.owner, thread_id), asyncio.get_running_loop()
        deadline = loop.time() + HOLD_SECONDS
        while True:
            with self._change(key) as change:
                view = await self.view(caller, thread_id, with_context=with_context)
                record = delta_record(view, position, knows_reset=knows_reset)
                if record is not None:
                    return record
                left = deadline - loop.time()
                if left <= 0 or not is_held_back(view, position, time.time()) or self._service.is_draining:
                    return unchanged_record(view, time.time())
                await self._wait(caller, view, change, left)

    @contextmanager
    def _change(self, key: ThreadKey) -> Iterator[asyncio.Event]:
        """An event that is set when there may be something new."""
        if (turn := self._turns.get(key)) is not None:
            yield turn.change
            return
        change = asyncio.Event()
        waiting = self._resting.setdefault(key, set())
        waiting.add(change)
        try:
            yield change
        finally:
            waiting.discard(change)
            if not waiting and self._resting.get(key) is waiting:
                del self._resting[key]

    async def _wait(self, caller: Caller, view: View, change: asyncio.Event, seconds: float) -> None:
        """Wait until the session may have changed. What another process does is only seen in the store."""
        key, loop = view.thread.key, asyncio.get_running_loop()
        deadline = loop.time() + seconds
        longest = seconds if key in self._turns else LOOK_SECONDS
        while (left := deadline - loop.time()) > 0 and not self._service.is_draining:
            try:
                async with asyncio.timeout(min(left, longest)):
                    await change.wait()
            except TimeoutError:
                found = await self._service.threads.delta(caller, key.thread_id, messages=False)
                if found.thread == view.thread:
                    continue
            return

    # --- what is shown ---

    async def view(self, caller: Caller, thread_id: str, *, with_context: bool = False) -> View:
        """Read a session as it is. Raises ``AppError`` THREAD_NOT_FOUND."""
        key = ThreadKey(caller.owner, thread_id)
        delta = await self._service.threads.delta(caller, thread_id, messages=False)
        turn = self._turns.get(key) or await self._join(caller, delta.thread)
        if turn is not None:
            turn.polled()
        messages = None if turn is None else turn.messages
        if messages is None:
            delta = await self._service.threads.delta(caller, thread_id)
            messages = await parsed(delta)
        status = delta.thread.status if turn is None else ThreadStatus.AGENT_TURN
        active = None if status is not ThreadStatus.AGENT_TURN else Active() if turn is None else turn.active
        notes = Notes.of(delta.thread.metadata)
        rows = shown(messages, notes, delta.thread.created_at, active, with_context=with_context)
        goals = goal_records(delta.goals or (), rows, declared_in(messages))
        calls = unanswered(messages) if status is ThreadStatus.USER_TURN else {}
        activity = await self._question(caller, thread_id, calls) if calls else None
        return View(delta.thread, notes, status, rows, goals, activity)

    async def _question(self, caller: Caller, thread_id: str, calls: Mapping[str, str]) -> str | None:
        """Say which calls wait for an answer that these clients cannot give, such as an approval."""
        found = await self._service.threads.answer(caller, ThreadsGet(thread_id=thread_id, messages=False))
        return ASKING.format(calls=", ".join(calls.values())) if found["waiting"] else None

    def is_active(self, thread: ThreadRecord) -> bool:
        """Tell whether the agent is at work on a thread."""
        return thread.key in self._turns or thread.status is ThreadStatus.AGENT_TURN

    # --- runs ---

    def follow(self, caller: Caller, thread_id: str, run_id: str, reader: Subscription) -> None:
        """Read a run that a client of this protocol began, to its end."""
        self._begin(caller, thread_id, run_id, reader, is_own=True)

    async def _join(self, caller: Caller, thread: ThreadRecord) -> Turn | None:
        """Read the thread's active run; None where there is none, or where it cannot be read."""
        if thread.active_run is None:
            return None
        try:
            reader = await self._service.attach(caller, thread.key.thread_id, thread.active_run, 0)
        except AppError:
            return None
        if (turn := self._turns.get(thread.key)) is not None:  # another poll was faster
            reader.close()
            return turn
        return self._begin(caller, thread.key.thread_id, thread.active_run, reader, is_own=False)

    def _begin(self, caller: Caller, thread_id: str, run_id: str, reader: Subscription, *, is_own: bool) -> Turn:
        key = ThreadKey(caller.owner, thread_id)
        turn = Turn(
            run_id,
            reader,
            is_own=is_own,
            before=partial(self._before, caller, thread_id, run_id),
            on_end=partial(self._ended, caller, thread_id, run_id),
        )
        self._turns[key] = turn
        task = asyncio.create_task(self._read(key, turn), name=f"roboto turn {run_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for change in self._resting.get(key, ()):
            change.set()
        return turn

    async def _read(self, key: ThreadKey, turn: Turn) -> None:
        try:
            await turn.follow()
        except Exception:
            logger.exception("turn cannot be read thread=%s", key.thread_id)
        finally:
            if self._turns.get(key) is turn:
                del self._turns[key]

    async def _before(self, caller: Caller, thread_id: str, run_id: str) -> Sequence[AguiMessage] | None:
        """The thread's messages before a run that is active; None once it is over."""
        delta = await self._service.threads.delta(caller, thread_id)
        return await parsed(delta) if delta.thread.active_run == run_id else None

    async def _ended(self, caller: Caller, thread_id: str, run_id: str, failure: Failure | None) -> None:
        """Wait until the end of a run is stored, and note why it failed."""
        deadline = asyncio.get_running_loop().time() + END_SECONDS
        delta = await self._service.threads.delta(caller, thread_id, messages=failure is not None)
        while delta.thread.active_run == run_id and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(END_LOOK_SECONDS)
            delta = await self._service.threads.delta(caller, thread_id, messages=failure is not None)
        if failure is not None and delta.messages:
            failures = Notes.of(delta.thread.metadata).with_failure(delta.messages[-1].id, failure)
            await self._service.threads.annotate(caller, thread_id, written(failures=failures))


def is_held_back(view: View, position: Position, now: float) -> bool:
    """Tell whether an answer without news waits: while the agent is at work, and for a client that keeps polling."""
    return view.status is ThreadStatus.AGENT_TURN or now - position.unchanged_at <= POLLING_SECONDS


def declared_in(messages: Sequence[AguiMessage]) -> dict[str, tuple[str, Sequence[JSON]]]:
    """Return the goals that messages declare: by run, the message's id and the goals."""
    found: dict[str, tuple[str, Sequence[JSON]]] = {}
    for message in messages:
        if isinstance(message, UserMessage):
            notes = MessageNotes.of(message.metadata)
            if notes.run_id is not None:
                found[notes.run_id] = message.id, notes.goals
    return found


async def parsed(delta: ThreadDelta) -> list[AguiMessage]:
    """Return a thread's messages, read off the event loop where there is much of them."""
    data = [message.data for message in delta.messages]
    if sum(map(len, data)) <= LARGE_BYTES:
        return list(map(MESSAGE.validate_json, data))
    return await anyio.to_thread.run_sync(lambda: list(map(MESSAGE.validate_json, data)))
