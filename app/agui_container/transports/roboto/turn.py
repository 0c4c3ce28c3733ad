"""A run that is read for clients that poll its session.

Rule: Roboto's clients have no open connection, so the server cannot notice that a client is gone. A run that a client
of this protocol began is read to its end. A run that another client began is read while clients poll the session.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from ag_ui.core import (
    BaseEvent,
    EventType,
    Message,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

from agui_container.engine.admission.quota import Limit
from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import RunKey, ThreadRecord
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.wire.envelope import Batch
from agui_container.runtime.offload import offload_if_large
from agui_container.transports.conversation.events import Event, decoded_events
from agui_container.transports.conversation.loop import ConversationLoop
from agui_container.transports.conversation.translator import ClientConnection, Opening
from agui_container.transports.roboto.messages import OpenItems
from agui_container.transports.roboto.notes import Notes, TurnFailure, as_metadata
from agui_container.transports.roboto.snapshot import parse_history
from agui_container.transports.roboto.translator import SHOWN, RobotoTranslator

UNPOLLED_SECONDS = 30.0
"""Seconds after the last poll for which a run of another client is read."""

END_SECONDS = 5.0
END_CHECK_SECONDS = 0.01
"""Seconds in which the end of a run must be stored, and seconds between two checks for it."""

NOT_ANNOUNCED = {EventType.TOOL_CALL_START, EventType.TOOL_CALL_ARGS}
"""Events that answer no waiting poll, because a call is shown only when its arguments are complete."""


class FollowedTurn(ClientConnection[None, BaseEvent]):
    """One run and its messages so far, as a connection to the clients that poll.

    Args:
        caller: owner of the session.
        is_own: True if a client of this protocol began the run.

    Attributes:
        size: estimated bytes of the messages of the thread and the run so far.
        change: event that the next change sets. Read it before ``messages``, so that no change is missed.
    """

    def __init__(self, service: Service, caller: Caller, *, is_own: bool) -> None:
        self.caller = caller
        self.size = 0
        self.change = asyncio.Event()
        self._service = service
        self._is_own = is_own
        self._translator = RobotoTranslator(is_own=is_own)
        self._loop = ConversationLoop(service, self, self._translator)
        self._loop.half_close(cancels=False)
        self._subscription: Subscription | None = None
        self._has_begun = False
        self._transcript: Transcript | None = None
        self._open_messages: set[str] = set()
        self._open_calls: set[str] = set()
        self._poll_timer: asyncio.TimerHandle | None = None

    @property
    def messages(self) -> list[Message] | None:
        """Messages of the thread and the run so far, or None if the store has the same or more."""
        return None if self._transcript is None else self._transcript.messages

    @property
    def active(self) -> OpenItems:
        """Messages and calls of the run that have not ended."""
        return OpenItems(frozenset(self._open_messages), frozenset(self._open_calls))

    async def admit(self, request: Opening[BaseEvent]) -> Subscription:
        """Begin the run of a request. Returns its events, for ``follow``. Raises ``AppError`` as ``Service.admit``."""
        return await self._loop.admit(request)

    async def follow(self, subscription: Subscription) -> None:
        """Read the run until its end is stored, or until no client polls any more.

        Raises:
            AppError: THREAD_NOT_FOUND if the thread is deleted; STORE_UNAVAILABLE.
        """
        self._subscription = subscription
        try:
            await self._loop.forward(subscription)
            if self._translator.has_ended:
                await self._store_end(self._translator.failure)
        finally:
            self._stop_timer()
            self.announce()

    def note_poll(self) -> None:
        """Note that a client polls the session."""
        if not self._is_own and self._subscription is not None:
            self._stop_timer()
            self._poll_timer = asyncio.get_running_loop().call_later(UNPOLLED_SECONDS, self._subscription.close)

    def announce(self) -> None:
        """Answer the polls that wait, and set the event of the next change."""
        change, self.change = self.change, asyncio.Event()
        change.set()

    def _stop_timer(self) -> None:
        if self._poll_timer is not None:
            self._poll_timer.cancel()

    # --- the connection ---

    async def receive(self) -> None:
        """Return at once: the clients send nothing but requests."""

    async def send(self, messages: Sequence[BaseEvent]) -> None:
        """Change the messages of the session by events."""
        for event in messages:
            if self._transcript is not None:
                self._transcript.feed(event)
                self._note_open(event)
        if any(event.type not in NOT_ANNOUNCED for event in messages):
            self.announce()

    async def send_events(self, batch: Batch, translate: Callable[[EventType, Event], Iterable[BaseEvent]]) -> None:
        """Translate events and change the messages by them."""
        await self._begin()
        self.size += sum(len(data) for kind, data in zip(batch.types, batch.data, strict=True) if kind in SHOWN)
        await self.send([event for it in decoded_events(batch) for event in translate(*it)])

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

    # --- the store ---

    @property
    def _key(self) -> RunKey:
        assert self._subscription is not None  # noqa: S101 - there are no events before
        return self._subscription.run.key

    async def _record(self) -> ThreadRecord:
        return await self._service.threads.record(self.caller, self._key.thread_id)

    async def _begin(self) -> None:
        """Read the thread before the run, unless the run has ended. The run's input is stored before its first event.

        A thread for which there is no room waits for it, because no client waits for the result.
        """
        if self._has_begun:
            return
        self._has_begun = True
        delta = await self._service.threads.delta(self.caller, self._key.thread_id)
        if delta.thread.active_run != self._key.run_id:
            return
        quota = self._service.quota.of(self.caller.identity)
        with await quota.acquire_when_free(Limit.BYTES_IN_FLIGHT, delta.size):
            messages = await offload_if_large(self.caller.identity, delta.size, parse_history, delta)
        self._transcript, self.size = Transcript(messages), delta.size

    async def _store_end(self, failure: TurnFailure | None) -> None:
        """Wait until the end of the run is stored, and store its failure."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + END_SECONDS
        thread = await self._record()
        while thread.active_run == self._key.run_id and loop.time() < deadline:
            await asyncio.sleep(END_CHECK_SECONDS)
            thread = await self._record()
        if failure is None:
            return
        last = await self._service.threads.last_message(self.caller, self._key.thread_id)
        if last is not None:
            failures = Notes.of((await self._record()).metadata).with_failure(last.id, failure)
            facts = as_metadata(failures=failures)
            await self._service.threads.annotate(self.caller, self._key.thread_id, facts)
