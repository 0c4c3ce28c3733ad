"""A run of a session, read from its first event, so that polls see the events so far.

Rule: Roboto's clients have no open connection, so the server cannot notice that a client is gone. A run that a client
of this protocol began is read to its end. A run that another client began is read while clients poll the session.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from ag_ui.core import (
    BaseEvent,
    EventType,
    Interrupt,
    Message,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from msgspec import Struct

from agui_container.engine.log.subscription import Subscription
from agui_container.protocol.conversation.recovery import EVENT
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.errors import AppError, clip_message
from agui_container.runtime.log_values import format_fields
from agui_container.transports.roboto.messages import OpenItems
from agui_container.transports.roboto.notes import APPROVAL_REQUIRED, CANCELLED, TurnFailure

NO_APPROVALS = (
    "The agent waits for an approval, which can be given through another protocol only: {names}. "
    "Your next message denies it."
)

UNPOLLED_SECONDS = 30.0
"""Seconds after the last poll for which a run of another client is read."""

SHOWN = {
    EventType.TEXT_MESSAGE_START,
    EventType.TEXT_MESSAGE_CONTENT,
    EventType.TEXT_MESSAGE_END,
    EventType.TOOL_CALL_START,
    EventType.TOOL_CALL_ARGS,
    EventType.TOOL_CALL_END,
    EventType.TOOL_CALL_RESULT,
    EventType.MESSAGES_SNAPSHOT,
}
"""Events that change the messages of a session."""

NOT_ANNOUNCED = {EventType.TOOL_CALL_START, EventType.TOOL_CALL_ARGS}
"""Events that answer no waiting poll, because a call is shown only when its arguments are complete."""

TERMINAL = {EventType.RUN_FINISHED, EventType.RUN_ERROR}

logger = logging.getLogger(__name__)


class History(Struct, frozen=True):
    """Messages of a thread before a run, and their estimated size in bytes."""

    messages: Sequence[Message]
    size: int


class FollowedTurn:
    """One run and its messages so far.

    Args:
        run_id: id of the run, for the log.
        subscription: events of the run from the first one; closed at the end.
        is_own: True if a client of this protocol began the run.
        before: reads the thread before the run. Returns None after the end of the run, which the store then has.
        on_end: called at the end of the run, with its failure or None.

    Attributes:
        size: estimated bytes of the messages of the thread and the run so far.
    """

    def __init__(
        self,
        run_id: str,
        subscription: Subscription,
        *,
        is_own: bool,
        before: Callable[[], Awaitable[History | None]],
        on_end: Callable[[TurnFailure | None], Awaitable[None]],
    ) -> None:
        self._run_id = run_id
        self._subscription = subscription
        self._is_own = is_own
        self._before = before
        self._on_end = on_end
        self.size = 0
        self._transcript: Transcript | None = None
        self._has_begun = self._has_ended = False
        self._open_messages: set[str] = set()
        self._open_calls: set[str] = set()
        self._failure: TurnFailure | None = None
        self._change = asyncio.Event()
        self._poll_timer: asyncio.TimerHandle | None = None

    @property
    def messages(self) -> list[Message] | None:
        """Messages of the thread and the run so far, or None if the store has the same or more."""
        return None if self._transcript is None else self._transcript.messages

    @property
    def active(self) -> OpenItems:
        """Messages and calls of the run that have not ended."""
        return OpenItems(frozenset(self._open_messages), frozenset(self._open_calls))

    @property
    def change(self) -> asyncio.Event:
        """Event that the next change sets. Read it before ``messages``, so that no change is missed."""
        return self._change

    def note_poll(self) -> None:
        """Note that a client polls the session."""
        if not self._is_own:
            self._cancel_timer()
            self._poll_timer = asyncio.get_running_loop().call_later(UNPOLLED_SECONDS, self._subscription.close)

    async def follow(self) -> None:
        """Read the run to its end, or until no client polls any more."""
        try:
            async for batch in self._subscription:
                await self._begin()
                types = {self._process(event_type, data) for _, _, event_type, data in batch.envelopes()}
                if types & (SHOWN - NOT_ANNOUNCED):
                    self.announce()
            if self._has_ended:
                await self._on_end(self._failure)
        except AppError as error:  # the run cannot be read any further, but it may continue
            logger.warning(
                "roboto turn cannot be followed %s", format_fields({"run": self._run_id, "code": error.code})
            )
        finally:
            self._cancel_timer()
            self._subscription.close()
            self.announce()

    async def _begin(self) -> None:
        """Read the thread before the run. The run's input is stored before its first event."""
        if not self._has_begun:
            self._has_begun = True
            if (history := await self._before()) is not None:
                self._transcript, self.size = Transcript(history.messages), history.size

    def announce(self) -> None:
        """Set the event of the next change."""
        change, self._change = self._change, asyncio.Event()
        change.set()

    def _cancel_timer(self) -> None:
        if self._poll_timer is not None:
            self._poll_timer.cancel()

    def _process(self, event_type: EventType, data: bytes) -> EventType:
        if event_type in TERMINAL:
            self._has_ended, event = True, EVENT.validate_json(data)
            self._failure = failure_in(event) or (missing_answers(event) if self._is_own else None)
        elif event_type in SHOWN and self._transcript is not None:
            event = EVENT.validate_json(data)
            self._transcript.feed(event)
            self.size += len(data)
            self._note_open(event)
        return event_type

    def _note_open(self, event: BaseEvent) -> None:
        match event:
            case TextMessageStartEvent():
                self._open_messages.add(event.message_id)
            case TextMessageEndEvent():
                self._open_messages.discard(event.message_id)
            case ToolCallStartEvent():
                self._open_calls.add(event.tool_call_id)
            case ToolCallEndEvent():
                self._open_calls.discard(event.tool_call_id)


def waiting_names(interrupts: Iterable[Interrupt]) -> str:
    """Return the tools, or the questions of an agent, that wait for answers, separated by commas."""
    names = ((it.metadata or {}).get("toolName") or it.message or it.reason for it in interrupts)
    return ", ".join(dict.fromkeys(map(str, names)))


def missing_answers(event: BaseEvent) -> TurnFailure | None:
    """Return a failure that says which calls wait for an approval at the end of a run, or None.

    This protocol has no answers to them. Without the failure, a client would see a turn that ends with nothing.
    """
    match event:
        case RunFinishedEvent(outcome=RunFinishedInterruptOutcome(interrupts=interrupts)):
            message = clip_message(NO_APPROVALS.format(names=waiting_names(interrupts)))
            return TurnFailure(code=APPROVAL_REQUIRED, message=message)
    return None


def failure_in(event: BaseEvent) -> TurnFailure | None:
    """Return the failure that the last event of a run reports, or None."""
    match event:
        case RunErrorEvent():
            return TurnFailure(code=event.code or "AGENT_ERROR", message=event.message)
        case RunFinishedEvent(outcome=RunFinishedCancelledOutcome()):
            return TurnFailure(code=CANCELLED, message="The turn was cancelled.")
    return None
