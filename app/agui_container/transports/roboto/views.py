"""Sessions as clients see them, and polls that wait for a change.

Rule: a session consists of the stored thread and the events so far of its active run. A turn ends when its end is
stored, so that a message that was shown is never missing in between.
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
from agui_container.runtime.log_values import format_fields
from agui_container.transports.roboto.messages import OpenItems, session_messages, unanswered_calls
from agui_container.transports.roboto.notes import MessageNotes, Notes, TurnFailure, as_metadata
from agui_container.transports.roboto.position import NOTHING, Position
from agui_container.transports.roboto.records import JSON, SessionView, delta_record, goal_records, unchanged_record
from agui_container.transports.roboto.turn import FollowedTurn

HOLD_SECONDS = 20.0
"""Seconds for which a poll waits for a change. Clients time out after 30 s."""

POLLING_SECONDS = 5.0
"""Seconds after a response without a change. A client whose next request is sooner is polling and must wait.

Clients ask again after 0.2 s. The rest is for a slow machine: a poll that arrives too late is answered at once, and if
that happened to many clients, their polls would make the machine slower still.
"""

CHECK_SECONDS = 2.0
"""Seconds between two reads of a session without an active run, while a poll waits."""

END_SECONDS = 5.0
END_CHECK_SECONDS = 0.01
"""Seconds in which the end of a run must be stored, and seconds between two checks for it."""

LARGE_BYTES = 100_000
"""Bytes of messages above which they are parsed in a thread."""

WAITING_NOTE = "Waiting for an answer through another protocol: {calls}"

logger = logging.getLogger(__name__)


class SessionReader:
    """Reader of the sessions of one engine. ``aclose`` stops following runs."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turns: dict[ThreadKey, FollowedTurn] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle_waiters: dict[ThreadKey, set[asyncio.Event]] = {}

    async def aclose(self) -> None:
        """Stop following runs. The engine ends the runs themselves."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- deltas ---

    async def delta(
        self, caller: Caller, thread_id: str, token: str | None, *, knows_reset: bool, with_context: bool
    ) -> JSON:
        """Return the changes since a token. Without a change, wait for one, for ``HOLD_SECONDS`` at most."""
        position = Position.parse(token) if token else NOTHING
        key, loop = ThreadKey(caller.owner, thread_id), asyncio.get_running_loop()
        deadline = loop.time() + HOLD_SECONDS
        while True:
            with self._change(key) as change:
                view = await self.view(caller, thread_id, with_context=with_context)
                record = delta_record(view, position, knows_reset=knows_reset)
                if record is not None:
                    return record
                seconds_left = deadline - loop.time()
                if seconds_left <= 0 or not is_deferred(view, position, time.time()) or self._service.is_draining:
                    return unchanged_record(view, time.time())
                await self._wait(caller, view, change, seconds_left)

    @contextmanager
    def _change(self, key: ThreadKey) -> Iterator[asyncio.Event]:
        """Provide an event that is set when the session may have changed."""
        if (turn := self._turns.get(key)) is not None:
            yield turn.change
            return
        change = asyncio.Event()
        waiting = self._idle_waiters.setdefault(key, set())
        waiting.add(change)
        try:
            yield change
        finally:
            waiting.discard(change)
            if not waiting and self._idle_waiters.get(key) is waiting:
                del self._idle_waiters[key]

    async def _wait(self, caller: Caller, view: SessionView, change: asyncio.Event, seconds: float) -> None:
        """Wait until the session may have changed. Changes by another process are visible only in the store."""
        key, loop = view.thread.key, asyncio.get_running_loop()
        deadline = loop.time() + seconds
        longest = seconds if key in self._turns else CHECK_SECONDS
        while (seconds_left := deadline - loop.time()) > 0 and not self._service.is_draining:
            try:
                async with asyncio.timeout(min(seconds_left, longest)):
                    await change.wait()
            except TimeoutError:
                current = await self._service.threads.delta(caller, key.thread_id, messages=False)
                if current.thread == view.thread:
                    continue
            return

    # --- views ---

    async def view(self, caller: Caller, thread_id: str, *, with_context: bool = False) -> SessionView:
        """Read the current state of a session. Raises ``AppError`` THREAD_NOT_FOUND."""
        key = ThreadKey(caller.owner, thread_id)
        delta = await self._service.threads.delta(caller, thread_id, messages=False)
        turn = self._turns.get(key) or await self._join(caller, delta.thread)
        if turn is not None:
            turn.note_poll()
        messages = None if turn is None else turn.messages
        if messages is None:
            delta = await self._service.threads.delta(caller, thread_id)
            messages = await parse_messages(delta)
        status = delta.thread.status if turn is None else ThreadStatus.AGENT_TURN
        active = None if status is not ThreadStatus.AGENT_TURN else OpenItems() if turn is None else turn.active
        notes = Notes.of(delta.thread.metadata)
        rows = session_messages(messages, notes, delta.thread.created_at, active, with_context=with_context)
        goals = goal_records(delta.goals or (), rows, declared_in(messages))
        calls = unanswered_calls(messages) if status is ThreadStatus.USER_TURN else {}
        activity = await self._waiting_note(caller, thread_id, calls) if calls else None
        return SessionView(delta.thread, notes, status, rows, goals, activity)

    async def _waiting_note(self, caller: Caller, thread_id: str, calls: Mapping[str, str]) -> str | None:
        """Return a note on the calls that wait for an answer through another protocol, such as an approval."""
        current = await self._service.threads.answer(caller, ThreadsGet(thread_id=thread_id, messages=False))
        return WAITING_NOTE.format(calls=", ".join(calls.values())) if current["waiting"] else None

    def is_active(self, thread: ThreadRecord) -> bool:
        """True while a run of the thread is active."""
        return thread.key in self._turns or thread.status is ThreadStatus.AGENT_TURN

    # --- runs ---

    def follow(self, caller: Caller, thread_id: str, run_id: str, subscription: Subscription) -> None:
        """Follow a run that a client of this protocol began, to its end."""
        self._begin(caller, thread_id, run_id, subscription, is_own=True)

    async def _join(self, caller: Caller, thread: ThreadRecord) -> FollowedTurn | None:
        """Follow the thread's active run. Returns None if there is none, or if it cannot be read."""
        if thread.active_run is None:
            return None
        try:
            subscription = await self._service.attach(caller, thread.key.thread_id, thread.active_run, 0)
        except AppError:
            return None
        if (turn := self._turns.get(thread.key)) is not None:  # another poll has begun to follow it in the meantime
            subscription.close()
            return turn
        return self._begin(caller, thread.key.thread_id, thread.active_run, subscription, is_own=False)

    def _begin(
        self, caller: Caller, thread_id: str, run_id: str, subscription: Subscription, *, is_own: bool
    ) -> FollowedTurn:
        key = ThreadKey(caller.owner, thread_id)
        turn = FollowedTurn(
            run_id,
            subscription,
            is_own=is_own,
            before=partial(self._before, caller, thread_id, run_id),
            on_end=partial(self._store_end, caller, thread_id, run_id),
        )
        self._turns[key] = turn
        task = asyncio.create_task(self._read(key, turn), name=f"roboto turn {run_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for change in self._idle_waiters.get(key, ()):
            change.set()
        return turn

    async def _read(self, key: ThreadKey, turn: FollowedTurn) -> None:
        try:
            await turn.follow()
        except Exception:
            logger.exception("roboto turn failed %s", format_fields({"thread": key.thread_id}))
        finally:
            if self._turns.get(key) is turn:
                del self._turns[key]

    async def _before(self, caller: Caller, thread_id: str, run_id: str) -> Sequence[AguiMessage] | None:
        """Return the thread's messages before an active run, or None if the run has ended."""
        delta = await self._service.threads.delta(caller, thread_id)
        return await parse_messages(delta) if delta.thread.active_run == run_id else None

    async def _store_end(self, caller: Caller, thread_id: str, run_id: str, failure: TurnFailure | None) -> None:
        """Wait until the end of a run is stored, and store its failure."""
        deadline = asyncio.get_running_loop().time() + END_SECONDS
        delta = await self._service.threads.delta(caller, thread_id, messages=failure is not None)
        while delta.thread.active_run == run_id and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(END_CHECK_SECONDS)
            delta = await self._service.threads.delta(caller, thread_id, messages=failure is not None)
        if failure is not None and delta.messages:
            failures = Notes.of(delta.thread.metadata).with_failure(delta.messages[-1].id, failure)
            await self._service.threads.annotate(caller, thread_id, as_metadata(failures=failures))


def is_deferred(view: SessionView, position: Position, now: float) -> bool:
    """True if a response without a change waits: while a run is active, and for a client that is polling."""
    return view.status is ThreadStatus.AGENT_TURN or now - position.unchanged_at / 1000 <= POLLING_SECONDS


def declared_in(messages: Sequence[AguiMessage]) -> dict[str, tuple[str, Sequence[JSON]]]:
    """Return the goals that messages declare, by run id: the id of the message, and the goals."""
    declared: dict[str, tuple[str, Sequence[JSON]]] = {}
    for message in messages:
        if isinstance(message, UserMessage):
            notes = MessageNotes.of(message.metadata)
            if notes.run_id is not None:
                declared[notes.run_id] = message.id, notes.goals
    return declared


async def parse_messages(delta: ThreadDelta) -> list[AguiMessage]:
    """Parse a thread's messages, off the event loop if they are large."""
    data = [message.data for message in delta.messages]
    if sum(map(len, data)) <= LARGE_BYTES:
        return list(map(MESSAGE.validate_json, data))
    return await anyio.to_thread.run_sync(lambda: list(map(MESSAGE.validate_json, data)))
