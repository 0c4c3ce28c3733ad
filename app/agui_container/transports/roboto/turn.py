"""A run of a session, read from its first event, so that polls find what has come.

Rule: Roboto's clients hold no connection, so nothing says that one has left. A turn that a client began is read to the
end of its run. A run that another client began is read as long as somebody polls.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from ag_ui.core import (
    BaseEvent,
    EventType,
    Message,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

from agui_container.engine.log.subscription import Subscription
from agui_container.protocol.conversation.recovery import EVENT
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.errors import AppError
from agui_container.transports.roboto.messages import Active
from agui_container.transports.roboto.notes import CANCELLED, Failure

UNPOLLED_SECONDS = 30.0
"""How long a run of another client is read after the last poll."""

FOLDED = {
    EventType.TEXT_MESSAGE_START,
    EventType.TEXT_MESSAGE_CONTENT,
    EventType.TEXT_MESSAGE_END,
    EventType.TOOL_CALL_START,
    EventType.TOOL_CALL_ARGS,
    EventType.TOOL_CALL_END,
    EventType.TOOL_CALL_RESULT,
    EventType.MESSAGES_SNAPSHOT,
}
"""Events that change what a session shows."""

UNSHOWN = {EventType.TOOL_CALL_START, EventType.TOOL_CALL_ARGS}
"""Those of them that a poll need not be answered for: a call is shown when its arguments are complete."""

TERMINAL = {EventType.RUN_FINISHED, EventType.RUN_ERROR}

logger = logging.getLogger(__name__)


class Turn:
    """One run, as far as it has come.

    Args:
        run_id: the run, for the log.
        reader: the run from its first event on; closed here.
        is_own: whether a client of this protocol began the run.
        before: reads the thread before the run; None once the run has ended, because then the store has all of it.
        on_end: called with the failure, if there was one, once the run has ended.
    """

    def __init__(
        self,
        run_id: str,
        reader: Subscription,
        *,
        is_own: bool,
        before: Callable[[], Awaitable[Sequence[Message] | None]],
        on_end: Callable[[Failure | None], Awaitable[None]],
    ) -> None:
        self._run_id = run_id
        self._reader = reader
        self._is_own = is_own
        self._before = before
        self._on_end = on_end
        self._transcript: Transcript | None = None
        self._has_begun = self._has_ended = False
        self._open_messages: set[str] = set()
        self._open_calls: set[str] = set()
        self._failure: Failure | None = None
        self._change = asyncio.Event()
        self._unpolled: asyncio.TimerHandle | None = None

    @property
    def messages(self) -> list[Message] | None:
        """The thread with what has come of the run; None where the store has the same or more."""
        return None if self._transcript is None else self._transcript.messages

    @property
    def active(self) -> Active:
        """What is open in the run."""
        return Active(frozenset(self._open_messages), frozenset(self._open_calls))

    @property
    def change(self) -> asyncio.Event:
        """Set with the next change. Take it before ``messages``, so that no change is missed."""
        return self._change

    def polled(self) -> None:
        """Note that somebody reads the session."""
        if not self._is_own:
            self._cancel_timer()
            self._unpolled = asyncio.get_running_loop().call_later(UNPOLLED_SECONDS, self._reader.close)

    async def follow(self) -> None:
        """Read the run to its end, or until nobody polls."""
        try:
            async for batch in self._reader:
                await self._begin()
                types = {self._take(event_type, data) for _, _, event_type, data in batch.envelopes()}
                if types & (FOLDED - UNSHOWN):
                    self._announce()
            if self._has_ended:
                await self._on_end(self._failure)
        except AppError as error:  # it cannot be read on; the run may go on
            logger.warning("turn cannot be followed run=%s code=%s", self._run_id, error.code)
        finally:
            self._cancel_timer()
            self._reader.close()
            self._announce()

    async def _begin(self) -> None:
        """Read the thread before the run. What the run was given is stored before its first event."""
        if not self._has_begun:
            self._has_begun = True
            messages = await self._before()
            self._transcript = None if messages is None else Transcript(messages)

    def _announce(self) -> None:
        change, self._change = self._change, asyncio.Event()
        change.set()

    def _cancel_timer(self) -> None:
        if self._unpolled is not None:
            self._unpolled.cancel()

    def _take(self, event_type: EventType, data: bytes) -> EventType:
        if event_type in TERMINAL:
            self._has_ended, self._failure = True, failure_in(EVENT.validate_json(data))
        elif event_type in FOLDED and self._transcript is not None:
            event = EVENT.validate_json(data)
            self._transcript.feed(event)
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


def failure_in(event: BaseEvent) -> Failure | None:
    """Return why a run failed, by its last event; None where it did not."""
    match event:
        case RunErrorEvent():
            return Failure(code=event.code or "AGENT_ERROR", message=event.message)
        case RunFinishedEvent(outcome=RunFinishedCancelledOutcome()):
            return Failure(code=CANCELLED, message="The turn was cancelled.")
    return None
