"""Sessions as clients poll them: the stored thread, and the live messages of a run that is read for its session.

Rules:

- Roboto's clients have no open connection, so the server cannot notice that a client is gone. A run that a client of
  this protocol has begun or polled is read to its end.
- Live messages are shown until the store has the end of the run, so that a message that was shown is never missing.
- A turn with goals consists of further runs until it ends (``goals``). A poll of such a session continues it, and the
  engine admits the next run only once.
- A poll that waits holds no session.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import orjson
from ag_ui.core import (
    EventType,
    Message,
    RunAgentInput,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

from agui_container.conversation.recovery import EVENT
from agui_container.engine.engine import Engine
from agui_container.engine.views import parse_messages
from agui_container.log_values import format_fields
from agui_container.ports import Caller
from agui_container.ports.records import ThreadDelta, ThreadKey, ThreadNote, ThreadRecord, ThreadStatus
from agui_container.protocol.errors import AppError, ErrorCode, clip_message, validation_error
from agui_container.protocols.conversation.approvals import approval_requests
from agui_container.protocols.conversation.events import (
    RUN_ENDS,
    Cancelled,
    Event,
    Failed,
    outcome_of,
    with_field_names,
)
from agui_container.protocols.roboto.goals import begins_turn, goals_in, goals_of, last_turn, next_step
from agui_container.protocols.roboto.messages import FIELD_NAMES, NewRun, continued_input
from agui_container.protocols.roboto.requests import APPROVAL_REQUIRED, CANCELLED, Facts, TurnFailure
from agui_container.protocols.roboto.views import NOTES, Position, SessionView
from agui_container.run.policy import NO_CONDITION, ThreadCondition
from agui_container.run.subscription import Subscription
from agui_container.threads import offload, offload_if_large
from agui_core.transcript import Transcript

HOLD_SECONDS = 1.0
"""Seconds for which a poll waits for a change. A client looks at the time limit of its user only between polls."""

STORE_SECONDS = 5.0
"""Seconds after a run for which its live messages are kept, unless the store has its end before."""

BUSY = "The session is not waiting for a message: the agent is at work."

NO_APPROVALS = (
    "The agent waits for an approval, which can be given through another protocol only: {names}. "
    "Your next message denies it."
)

T = TypeVar("T")

logger = logging.getLogger(__name__)


class LiveMessages:
    """The messages of a thread while a run adds to them. ``open_ids`` are those of messages and calls without end."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.open_ids: set[str] = set()
        self._transcript = Transcript(messages)

    @property
    def messages(self) -> list[Message]:
        return self._transcript.messages

    def feed(self, data: bytes) -> None:
        """Change the messages by an event as JSON. A call is open until its arguments are complete."""
        event = EVENT.validate_json(data)
        self._transcript.feed(event)
        match event:
            case TextMessageStartEvent(message_id=item) | ToolCallStartEvent(tool_call_id=item):
                self.open_ids.add(item)
            case TextMessageEndEvent(message_id=item) | ToolCallEndEvent(tool_call_id=item):
                self.open_ids.discard(item)


class LiveRun:
    """A run that is read for its session.

    Attributes:
        is_own: True if a client of this protocol began the run. Such a client sees a failure if an approval waits,
            because this protocol has no answers to approvals and the turn would otherwise end with nothing.
        live: messages of the thread and the run so far, or None before the first event.
        size: estimated bytes of these messages.
        end: type and content of the event that ended the run.
        change: event that the next change sets. Read it before ``live``, so that no change is missed.
    """

    def __init__(self, caller: Caller, subscription: Subscription, *, is_own: bool) -> None:
        self.caller, self.is_own = caller, is_own
        self.key, self.thread = subscription.run.key, subscription.run.key.thread
        self.live: LiveMessages | None = None
        self.size = 0
        self.end: tuple[EventType, Event] | None = None
        self.change = asyncio.Event()
        self._subscription = subscription

    async def read(self, service: Engine) -> None:
        """Read the run to its end. Its input is stored before its first event, and its messages at its end."""
        is_stored = False
        async for batch in self._subscription:
            if self.live is None:
                before = await service.threads.delta(self.caller, self.key.thread_id)
                self.size, is_stored = before.size, before.thread.active_run != self.key.run_id
                self.live = LiveMessages(await offload_if_large(before.size, parse_messages, before.messages))
            for kind, data in zip(batch.types, batch.data, strict=True):
                if kind in RUN_ENDS:
                    self.end = kind, orjson.loads(data)
                elif not is_stored:
                    self.size += len(data)
                    self.live.feed(data)
            self.announce()

    def announce(self) -> None:
        """Answer the polls that wait, and set the event of the next change."""
        change, self.change = self.change, asyncio.Event()
        change.set()

    def close(self) -> None:
        self._subscription.close()
        self.announce()


def failure_of(kind: EventType, event: Event, *, is_own: bool) -> TurnFailure | None:
    """Return the reason for which a turn whose run ended with this event has no answer."""
    match outcome_of(kind, event):
        case Failed(error=error):
            message = with_field_names(error, FIELD_NAMES).message
            return TurnFailure(code=str(event.get("code") or error.code), message=message)
        case Cancelled():
            return TurnFailure(code=CANCELLED, message="The turn was cancelled.")
    names = ", ".join(dict.fromkeys(request.label for request in approval_requests(event)))
    if not names or not is_own:
        return None
    return TurnFailure(code=APPROVAL_REQUIRED, message=clip_message(NO_APPROVALS.format(names=names)))


class Turns:
    def __init__(self, service: Engine) -> None:
        self._service = service
        self._live: dict[ThreadKey, LiveRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Stop reading runs. The engine ends the runs themselves."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- polls ---

    async def delta(self, caller: Caller, thread_id: str, token: str | None, *, knows_reset: bool) -> bytes:
        """Return the changes since a token, as JSON. While a run changes nothing, wait ``HOLD_SECONDS`` for a change.

        Nothing of the session but the answer is kept meanwhile. A change by another process is seen by the next poll.
        """
        position = Position.parse(token) if token else Position()
        changes = partial(SessionView.delta, since=position, knows_reset=knows_reset)
        run = self._live.get(ThreadKey(caller.owner, thread_id))
        change = None if run is None else run.change
        delta, is_final = await self.read(caller, thread_id, changes)
        if is_final or change is None:
            return delta
        try:
            async with asyncio.timeout(HOLD_SECONDS):
                await change.wait()
        except TimeoutError:
            return delta
        return (await self.read(caller, thread_id, changes))[0]

    async def read(self, caller: Caller, thread_id: str, work: Callable[[SessionView], T]) -> T:
        """Apply a function to the current state of a session, in a worker thread if the session is large."""
        run = self._live.get(ThreadKey(caller.owner, thread_id))
        is_shown = run is not None and run.live is not None
        session = await self._service.threads.delta(caller, thread_id, messages=not is_shown, notes=NOTES)
        run = run or await self._join(caller, session)
        size, live, open_ids = session.size, None if run is None else run.live, None
        if run is not None or session.thread.status is ThreadStatus.AGENT_TURN:
            open_ids = frozenset(live.open_ids if live else ())
        messages = live.messages if live else None
        size += run.size if run and live else 0

        def build() -> T:
            history = parse_messages(session.messages) if messages is None else messages
            return work(SessionView.of(session, history, open_ids))

        return await offload_if_large(size, build)

    def is_active(self, thread: ThreadRecord) -> bool:
        return thread.key in self._live or thread.status is ThreadStatus.AGENT_TURN

    # --- runs ---

    async def begin(
        self,
        caller: Caller,
        run_input: RunAgentInput,
        size: int,
        notes: Sequence[ThreadNote] = (),
        latest_run: str | None = None,
    ) -> None:
        """Begin a run, store notes of its session, and read the run to its end.

        A newer run than ``latest_run`` refuses it. Raises ``AppError`` as ``Engine.admit``, with Roboto's fields, and
        VALIDATION_ERROR for THREAD_BUSY, as Roboto has it while the agent is at work.
        """
        condition = NO_CONDITION if latest_run is None else ThreadCondition(latest_run=latest_run)
        try:
            subscription = await self._service.admit(run_input, caller, size, condition)
        except AppError as error:
            is_busy = error.code is ErrorCode.THREAD_BUSY
            raise validation_error(BUSY) if is_busy else with_field_names(error, FIELD_NAMES) from None
        try:
            await self._service.threads.put_notes(caller, run_input.thread_id, notes)
        finally:
            self._follow(LiveRun(caller, subscription, is_own=True))

    async def _join(self, caller: Caller, session: ThreadDelta) -> LiveRun | None:
        """Read the active run of a session, or begin the run that continues its goals."""
        thread = session.thread
        with suppress(AppError):  # the run has ended meanwhile, or another poll continues the turn
            if thread.active_run is not None:
                subscription = await self._service.attach(caller, thread.key.thread_id, thread.active_run, 0)
                if thread.key in self._live:  # another poll reads it meanwhile
                    subscription.close()
                else:
                    self._follow(LiveRun(caller, subscription, is_own=False))
            elif any(goal.status == "pending" for goal in goals_in(session.notes)):
                await self._continue_goals(caller, thread.key.thread_id)
        return self._live.get(thread.key)

    def _follow(self, run: LiveRun) -> None:
        self._live[run.thread] = run
        task = asyncio.create_task(self._read_run(run), name="roboto run")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read_run(self, run: LiveRun) -> None:
        """Read a run until the store has its end, store its failure, and continue its goals."""
        threads, thread_id = self._service.threads, run.key.thread_id
        try:
            await run.read(self._service)
            if (await threads.record(run.caller, thread_id)).active_run == run.key.run_id:
                await self._service.cluster.thread_ends.wait(run.thread, STORE_SECONDS)
            if run.end is not None and run.live is not None and self._live.get(run.thread) is run:
                failure, messages = failure_of(*run.end, is_own=run.is_own), run.live.messages
                if failure is not None and messages:
                    await threads.put_notes(run.caller, thread_id, [failure.note(messages[-1].id)])
                await self._continue_goals(run.caller, thread_id)
        except AppError as error:
            logger.warning("roboto run cannot be followed %s", format_fields({"thread": thread_id, "code": error.code}))
        except Exception:
            logger.exception("roboto run failed %s", format_fields({"thread": thread_id}))
        finally:
            if self._live.get(run.thread) is run:
                del self._live[run.thread]
            run.close()

    async def _continue_goals(self, caller: Caller, thread_id: str) -> None:
        """Begin the run that continues the goals of a thread's last turn, or store the end of these goals."""
        threads, new_id, now = self._service.threads, self._service.new_id, time.time()
        session = await threads.delta(caller, thread_id, messages=False, notes=NOTES)
        if not (goals := goals_in(session.notes)):
            return
        latest = await self._service.runs.find_any(caller, thread_id, None)
        turn = last_turn(await threads.messages_since(caller, thread_id, begins_turn))
        step = await offload(next_step, goals, turn, latest.status, new_id, now)
        notes = [goal.note for goal in step.changed]
        if step.messages:
            run = NewRun(thread_id, new_id(), now, Facts.of(session.notes), goals_of(turn, goals))
            size = sum(len(message.model_dump_json()) for message in step.messages)
            await self.begin(caller, continued_input(run, step.messages), size, notes, latest.key.run_id)
        elif notes:
            await threads.put_notes(caller, thread_id, notes)
