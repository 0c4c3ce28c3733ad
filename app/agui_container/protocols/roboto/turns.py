"""Sessions as clients poll them: the stored thread, and the live messages of a run that is read for its session.

Rules:

- Roboto's clients have no open connection, so the server cannot notice that a client is gone. A run that a client of
  this protocol began is read to its end. A run that another client began is read while clients poll the session.
- Live messages are shown until the store has the end of the run, so that a message that was shown is never missing.
- A turn with goals consists of further runs until it ends (``goals``). A poll of such a session continues it, and the
  engine admits the next run only once.
- A poll that waits holds no session.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import orjson
from ag_ui.core import EventType, Message, RunAgentInput
from msgspec import Struct

from agui_container.engine.engine import Engine
from agui_container.engine.views import interrupt_view
from agui_container.log_values import format_fields
from agui_container.ports import Caller
from agui_container.ports.records import ThreadDelta, ThreadKey, ThreadRecord, ThreadStatus
from agui_container.protocol.errors import AppError, clip_message
from agui_container.protocol.wire.envelope import Batch
from agui_container.protocols.conversation.approvals import ApprovalRequest, approval_request, approval_requests
from agui_container.protocols.conversation.events import (
    RUN_ENDS,
    Cancelled,
    Event,
    Failed,
    outcome_of,
    with_field_names,
)
from agui_container.protocols.roboto.goals import last_turn, next_step
from agui_container.protocols.roboto.messages import FIELD_NAMES, NewRun, Reader, continued_input
from agui_container.protocols.roboto.records import APPROVAL_REQUIRED, CANCELLED, FACTS, Notes, TurnFailure, as_notes
from agui_container.protocols.roboto.views import (
    ANNOUNCED,
    SHOWN,
    LiveMessages,
    Position,
    SessionView,
    parse_history,
    view_of,
)
from agui_container.run.policy import NO_CONDITION, ThreadCondition
from agui_container.run.subscription import Subscription
from agui_container.threads import offload, offload_if_large

HOLD_SECONDS = 1.0
"""Seconds for which a poll waits for a change. A client looks at the time limit of its user only between polls."""

STORE_SECONDS = 5.0
"""Seconds after a run for which its live messages are kept for polls, unless the store has its end before."""

UNPOLLED_SECONDS = 30.0
"""Seconds after the last poll for which a run of another client is read."""

NO_APPROVALS = (
    "The agent waits for an approval, which can be given through another protocol only: {names}. "
    "Your next message denies it."
)

T = TypeVar("T")

logger = logging.getLogger(__name__)


# --- a run that is read -----------------------------------------------------------------------------------------------


class FollowedRun:
    """A run and the messages of its thread so far.

    Attributes:
        is_own: True if a client of this protocol began the run. Such a client sees a failure if an approval waits,
            because this protocol has no answers to approvals and the turn would otherwise end with nothing.
        live: messages of the thread and the run so far, or None before the first event.
        size: estimated bytes of these messages.
        end: type and content of the event that ended the run.
        is_over: True if the run has ended, and no run continues its goals that is not followed yet.
        change: event that the next change sets. Read it before ``live``, so that no change is missed.
    """

    def __init__(self, service: Engine, caller: Caller, subscription: Subscription, *, is_own: bool) -> None:
        self.caller, self.is_own = caller, is_own
        self.key, self.run_id = subscription.run.key.thread, subscription.run.key.run_id
        self.live: LiveMessages | None = None
        self.size = 0
        self.end: tuple[EventType, Event] | None = None
        self.is_over = False
        self.change = asyncio.Event()
        self._service = service
        self._subscription = subscription
        self._poll_timer: asyncio.TimerHandle | None = None
        self._is_stored = False

    async def read(self) -> None:
        """Read the run to its end, or until no client polls any more."""
        async for batch in self._subscription:
            if self.live is None:
                self.live = LiveMessages(await self._messages_before())
            self._feed(batch, self.live)
            if not ANNOUNCED.isdisjoint(batch.types):
                self.announce()

    def note_poll(self) -> None:
        """Note that a client polls the session."""
        if not self.is_own:
            self._stop_timer()
            loop = asyncio.get_running_loop()
            self._poll_timer = loop.call_later(UNPOLLED_SECONDS, self._subscription.close)

    def announce(self) -> None:
        """Answer the polls that wait, and set the event of the next change."""
        change, self.change = self.change, asyncio.Event()
        change.set()

    def close(self) -> None:
        self._stop_timer()
        self._subscription.close()
        self.announce()

    def _stop_timer(self) -> None:
        if self._poll_timer is not None:
            self._poll_timer.cancel()

    def _feed(self, batch: Batch, live: LiveMessages) -> None:
        for kind, data in zip(batch.types, batch.data, strict=True):
            if kind in RUN_ENDS:
                self.end = kind, orjson.loads(data)
            elif kind in SHOWN and not self._is_stored:
                self.size += len(data)
                live.feed(data)

    async def _messages_before(self) -> Sequence[Message]:
        """Read the thread before the run, or with it if it has ended. Its input is stored before its first event."""
        delta = await self._service.threads.delta(self.caller, self.key.thread_id)
        self.size, self._is_stored = delta.size, delta.thread.active_run != self.run_id
        return await offload_if_large(delta.size, parse_history, delta.messages)


def failure_of(kind: EventType, event: Event, *, is_own: bool) -> TurnFailure | None:
    """Return the reason for which a turn whose run ended with this event has no answer."""
    match outcome_of(kind, event):
        case Failed(error=error):
            message = with_field_names(error, FIELD_NAMES).message
            return TurnFailure(code=str(event.get("code") or error.code), message=message)
        case Cancelled():
            return TurnFailure(code=CANCELLED, message="The turn was cancelled.")
    names = waiting_names(approval_requests(event))
    if not names or not is_own:
        return None
    return TurnFailure(code=APPROVAL_REQUIRED, message=clip_message(NO_APPROVALS.format(names=names)))


def waiting_names(requests: Iterable[ApprovalRequest]) -> str:
    """Return the tools, or the questions of an agent, that wait for answers, separated by commas."""
    return ", ".join(dict.fromkeys(request.label for request in requests))


def run_status(kind: EventType, event: Event) -> str:
    """Return the status of a run that ended with this event, as AG-UI's views have it."""
    if kind is EventType.RUN_ERROR:
        return "error"
    outcome = str((event.get("outcome") or {}).get("type"))
    return {"interrupt": "interrupted", "cancelled": "cancelled"}.get(outcome, "finished")


# --- sessions ---------------------------------------------------------------------------------------------------------


class SessionClient(Struct, frozen=True):
    """Sender of a request. ``knows_reset`` is True for a client that can drop messages that it has."""

    caller: Caller
    reader: Reader = Reader()
    knows_reset: bool = True


class SessionReader:
    """Reader of the sessions of one engine. Polls that wait are answered when the engine drains."""

    def __init__(self, service: Engine) -> None:
        self._service = service
        self._runs: dict[ThreadKey, FollowedRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        service.call_on_drain(self._wake_polls)

    async def aclose(self) -> None:
        """Stop following runs. The engine ends the runs themselves."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _wake_polls(self) -> None:
        for run in self._runs.values():
            run.announce()

    async def delta(self, client: SessionClient, thread_id: str, token: str | None) -> bytes:
        """Return the changes since a token, as JSON. While a run changes nothing, wait ``HOLD_SECONDS`` for a change.

        Nothing of the session but the answer is kept meanwhile.
        """
        position = Position.parse(token) if token else Position()
        key, deadline = ThreadKey(client.caller.owner, thread_id), asyncio.get_running_loop().time() + HOLD_SECONDS
        changes = partial(SessionView.delta, since=position, knows_reset=client.knows_reset)
        while True:
            run = self._runs.get(key)
            change = None if run is None else run.change
            delta, may_wait = await self.read(client, thread_id, changes)
            followed = self._runs.get(key)
            if not may_wait or followed is None or followed.is_over:
                return delta
            if change is not None and not await self._wait(change, deadline):
                return delta

    async def _wait(self, change: asyncio.Event, deadline: float) -> bool:
        """Wait until the session may have changed. Returns False if it has not until the deadline.

        A change by another process is seen by the next poll.
        """
        if self._service.is_draining:
            return False
        try:
            async with asyncio.timeout_at(deadline):
                return await change.wait()
        except TimeoutError:
            return False

    async def read(self, client: SessionClient, thread_id: str, work: Callable[[SessionView], T]) -> T:
        """Apply a function to the current state of a session, in a worker thread if the session is large."""
        size, snapshot = await self._snapshot(client, thread_id)
        return await offload_if_large(size, lambda: work(snapshot()))

    async def _snapshot(self, client: SessionClient, thread_id: str) -> tuple[int, Callable[[], SessionView]]:
        """Read a session. Returns its bytes, and a function that builds its view, which may take time."""
        caller, threads = client.caller, self._service.threads
        session = await threads.delta(caller, thread_id, messages=False, notes=(FACTS,))
        thread = session.thread
        run = self._run_of(thread) or await self._join(caller, thread) or await self._resume_goals(caller, session)
        if run is not None:
            run.note_poll()
            if run.live is not None:
                open_ids = frozenset(run.live.open_ids)
                return run.size + session.size, partial(view_of, client.reader, session, run.live.messages, open_ids)
        delta = await threads.delta(caller, thread_id, notes=(FACTS,))
        if run is not None or delta.thread.status is ThreadStatus.AGENT_TURN:
            return delta.size, partial(view_of, client.reader, delta, delta.messages, frozenset())
        interrupts = await threads.waiting(caller, thread_id) if delta.thread.status is ThreadStatus.USER_TURN else ()
        names = waiting_names(approval_request(interrupt_view(each)) for each in interrupts)
        return delta.size, partial(view_of, client.reader, delta, delta.messages, waiting=names)

    # --- runs ---

    def is_active(self, thread: ThreadRecord) -> bool:
        """Return True while a run of the thread is active."""
        return self._run_of(thread) is not None or thread.status is ThreadStatus.AGENT_TURN

    def _run_of(self, thread: ThreadRecord) -> FollowedRun | None:
        """Return the run that is followed for a thread. Forget it if the store has its end."""
        run = self._runs.get(thread.key)
        if run is not None and run.is_over and run.run_id != thread.active_run:
            self._forget(run)
            return None
        return run

    async def begin(self, caller: Caller, run_input: RunAgentInput, size: int, latest_run: str | None = None) -> None:
        """Begin a run, and follow it to its end. A newer run than ``latest_run`` refuses it."""
        condition = NO_CONDITION if latest_run is None else ThreadCondition(latest_run=latest_run)
        subscription = await self._service.admit(run_input, caller, size, condition)
        self._follow(FollowedRun(self._service, caller, subscription, is_own=True))

    async def _join(self, caller: Caller, thread: ThreadRecord) -> FollowedRun | None:
        if thread.active_run is None:
            return None
        try:
            subscription = await self._service.attach(caller, thread.key.thread_id, thread.active_run, 0)
        except AppError:
            return None
        if (run := self._runs.get(thread.key)) is not None:  # another poll has begun to follow it in the meantime
            subscription.close()
            return run
        return self._follow(FollowedRun(self._service, caller, subscription, is_own=False))

    def _follow(self, run: FollowedRun) -> FollowedRun:
        self._runs[run.key] = run
        task = asyncio.create_task(self._read_run(run), name="roboto run")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    async def _read_run(self, run: FollowedRun) -> None:
        """Read a run, store its failure, and continue its goals. Keep it until the store has its end."""
        fields = {"thread": run.key.thread_id}
        try:
            await run.read()
            if run.end is not None and run.live is not None:
                await self._store_failure(run, run.live.messages, failure_of(*run.end, is_own=run.is_own))
                status = run_status(*run.end)
                await self.continue_goals(run.caller, run.key, run.live.messages, status, run.run_id)
                run.is_over = True
                thread = await self._service.threads.record(run.caller, run.key.thread_id)
                if thread.active_run == run.run_id:
                    asyncio.get_running_loop().call_later(STORE_SECONDS, self._forget, run)
                    return
        except AppError as error:
            logger.warning("roboto run cannot be followed %s", format_fields({**fields, "code": error.code}))
        except Exception:
            logger.exception("roboto run failed %s", format_fields(fields))
        finally:
            run.close()
        self._forget(run)

    def _forget(self, run: FollowedRun) -> None:
        if self._runs.get(run.key) is run:
            del self._runs[run.key]

    async def _store_failure(self, run: FollowedRun, messages: Sequence[Message], failure: TurnFailure | None) -> None:
        if failure is not None and messages:
            facts = (await self._notes(run.caller, run.key)).with_failure(messages[-1].id, failure)
            await self._service.threads.put_notes(run.caller, run.key.thread_id, as_notes(facts))

    # --- goals ---

    async def _notes(self, caller: Caller, key: ThreadKey) -> Notes:
        threads = self._service.threads
        return Notes.of((await threads.delta(caller, key.thread_id, messages=False, notes=(FACTS,))).notes)

    async def continue_goals(
        self, caller: Caller, key: ThreadKey, messages: Sequence[Message], status: str, run_id: str
    ) -> None:
        """Begin the run that continues the goals of a thread's last turn, or store the end of these goals.

        ``messages`` are those of the thread, ``run_id`` and ``status`` those of its latest run.
        """
        notes, now = await self._notes(caller, key), time.time()
        turn = None if notes.open_goals is None else last_turn(messages)
        if notes.open_goals is None or (turn is not None and turn.notes.run_id != notes.open_goals):
            return  # nothing is open, or the user has begun another turn in the meantime
        step = None if turn is None else await offload(next_step, turn, status, self._service.new_id, now)
        if step is None or step.is_end:
            await self._service.threads.put_notes(caller, key.thread_id, as_notes(notes.with_goals(None, now)))
        elif step.messages and turn is not None:
            new = NewRun(key.thread_id, self._service.new_id(), now, notes, turn.tools)
            size = sum(len(message.model_dump_json()) for message in step.messages)
            await self.begin(caller, continued_input(new, step.messages), size, run_id)

    async def _resume_goals(self, caller: Caller, session: ThreadDelta) -> FollowedRun | None:
        """Continue a turn with goals whose process has ended. Returns None if nothing is to be continued."""
        key = session.thread.key
        if session.thread.active_run is not None or Notes.of(session.notes).open_goals is None:
            return None
        try:
            run = await self._service.runs.find(caller, key.thread_id, None)
            delta = await self._service.threads.delta(caller, key.thread_id)
            messages = await offload_if_large(delta.size, parse_history, delta.messages)
            await self.continue_goals(caller, key, messages, str(run["status"]), str(run["runId"]))
        except AppError as error:  # another poll has continued the turn in the meantime
            logger.info("goals not continued %s", format_fields({"thread": key.thread_id, "code": error.code}))
        return self._runs.get(key)
