"""The one way into a run's log: expand, encode, check, append.

Rule: what cannot be sent, or may not come now, is refused before anything depends on it, so the log is legal at every
moment. The shared state follows what is written, because that is what the client has.
"""

import logging
from collections.abc import Callable, Sequence

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    EventType,
    Message,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
)

from app.core.chunks import Expander
from app.core.deltas import after
from app.core.duties import Duties
from app.core.encoder import encode
from app.core.errors import IllegalEvent
from app.core.fold import Transcript
from app.core.history import dumped, owed, title_of
from app.core.order import KINDS, TOOL_CALL, Kind
from app.core.sequence import RunSequence
from app.core.state import SharedState
from app.core.stretch import Texts
from app.engine.ending import GoalWatch, Left
from app.engine.log import RunLog
from app.ports import Item
from app.ports.conversation import Change, StoredMessage

logger = logging.getLogger(__name__)


class Funnel:
    """The funnel of one run.

    Args:
        run_input: what is asked; it is not kept.
        new_id: makes the ids of messages.
        log: where accepted events go.
    """

    __slots__ = (
        "_duties",
        "_expander",
        "_goals",
        "_log",
        "_sequence",
        "_state_users",
        "_texts",
        "_transcript",
        "cross",
        "state",
    )

    cross: Callable[[BaseEvent], None]
    """Takes what begins or ends a run, which is the run's own to do. It is there only while the agent is iterated:
    a context leads to this funnel, which would lead to the run."""

    def __init__(self, run_input: RunAgentInput, new_id: Callable[[], str], log: RunLog) -> None:
        self._log = log
        self._expander = Expander(new_id)
        self._sequence = RunSequence()
        self._goals = GoalWatch()
        self._texts: Texts | None = None
        self._state_users = 0
        self.start_from(run_input)

    def start_from(self, run_input: RunAgentInput) -> None:
        """What is asked, now that it is known in full; nothing has been accepted yet."""
        self.state = SharedState(run_input.state)
        """The shared state as the events make it."""
        self._duties = Duties(run_input.messages, resumed=bool(run_input.resume))
        self._transcript = Transcript(run_input.messages)

    def send(self, item: Item) -> None:
        """Accept what comes from elsewhere than the agent's generator, which may do more. Nothing after the run's end.

        Raises:
            IllegalEvent: not now, or not at all: the run itself is not a tool's to start or end.
            PatchError: a delta that does not apply to the state.
            AppError: the run has grown too large. What makes it so is taken, and nothing behind it.
        """
        if self._log.ended:
            return
        if self._log.lacks_room:
            raise self._log.excess()
        if isinstance(item, RunStartedEvent | RunFinishedEvent | RunErrorEvent):
            raise IllegalEvent(f"{type(item).__name__} from a tool")
        if isinstance(item, StateDeltaEvent):
            self.state.check(item)
        self.emit(item)
        self._log.settle()

    def value(self) -> object:
        """The shared state of the moment."""
        return self.state.value()

    def emit(self, item: Item) -> None:
        """Accept an item, or raise ``IllegalEvent``; ``AppError`` when it has made the run too large.

        For deltas that go on with one another it is too large behind their burst, so that the next item is told. The
        run does the same for what its agent yields.
        """
        goes_on = self._log.goes_on
        if goes_on is None or not goes_on.takes(item):
            self.look_at(item)

    def look_at(self, item: Item) -> None:
        """``emit``, for an item that is known not to go on with the last event."""
        if not self._expander.hand_out(item, self._take):
            raise self._log.excess()

    def _take(self, item: Item, event: BaseEvent, data: bytes | None) -> bool:
        """Accept an event of an item. False where the log has no room for more."""
        kind = KINDS[type(event)]
        if kind.is_boundary:
            self.cross(event)
            return True
        data = data or encode(event)
        if not self.accept(kind, event, data):
            return False
        if kind.is_delta:
            self._follow(item, event, data, kind.type)
        return True

    def _follow(self, item: Item, event: BaseEvent, data: bytes, event_type: EventType) -> None:
        """What goes on with a delta is told by it, once the stream goes on: several may take turns."""
        texts, self._texts = self._texts, self._transcript.growing
        if texts is not None and texts is self._texts:
            goes_on = after(item, event, data, len(self._log), event_type)
            if goes_on is not None:
                self._log.follow(goes_on)

    def _put_away(self) -> None:
        """Nothing goes on with the last event. What has gone on with it is said of the same message."""
        went_on = self._log.put_away()
        if went_on is not None and self._texts is not None:
            self._texts.append(went_on)

    def write(self, event: BaseEvent) -> None:
        """Encode and accept one event. Raises ``IllegalEvent`` and leaves everything as it was."""
        self.accept(KINDS[type(event)], event, encode(event))

    def accept(self, kind: Kind, event: BaseEvent, data: bytes) -> bool:
        """``write``, for an event whose kind and bytes are known. False where the log has no room for more."""
        self._put_away()
        if kind.tells_of_calls:
            self._duties.check(event)
            self._sequence.take(kind, event)
            self._duties.feed(event)
        else:
            self._sequence.take(kind, event)
        if kind.tells_of_messages:
            self._transcript.take(kind, event)
        elif kind.event is CustomEvent and isinstance(event, CustomEvent):
            self._goals.feed(event)
        if kind.changes_state:
            self._fold(event)
        return self._log.append(kind.type, data)

    def flush(self) -> None:
        """End the streams of chunks, which have no end of their own.

        Raises:
            AppError: the run has grown too large, and nothing that was said since could be told so.
        """
        for event in self._expander.flush():
            self.write(event)
        self._log.settle()
        if self._log.is_full:
            raise self._log.excess()

    def close(self, failure: str | None) -> None:
        """Write what is still owed before a terminal event. ``failure`` is the message for subagents cut off."""
        for event in self._sequence.closers(failure):  # open chunk streams are among them
            self.write(event)

    def pending(self) -> list[str]:
        """The calls of this run that have no result.

        Raises:
            IllegalEvent: a call is still open. Closing it would tell a client to run it with arguments that may be cut
                off.
        """
        if self._sequence.is_open(TOOL_CALL):
            raise IllegalEvent("the run finished with a tool call open")
        return self._duties.pending()

    def left(self, run_id: str) -> Left:
        """What the events so far leave to the thread; no messages where that cannot be told.

        No end of a run depends on it.
        """
        self._put_away()
        try:
            messages = self._transcript.messages
            change, calls = self._change(run_id, messages), owed(messages)
        except Exception:
            logger.exception("what the run leaves to its thread cannot be kept")
            return Left(goals_failed=self._goals.failed)
        return Left(change, bool(calls), self._goals.failed)

    def _change(self, run_id: str, messages: Sequence[Message]) -> Change:
        changed = self._transcript.changed(messages)
        return Change(
            messages=[StoredMessage(message.id, dumped(message), run_id) for message in changed],
            order=self._transcript.order,
            state=self.state.json() if self.state.is_new else None,
            title=title_of(messages),
        )

    def release(self) -> None:
        """The run is over: let go of what it held, because an ended run is kept for a while. Nothing more may come.

        The state stays as long as the agent or its background work may read it.
        """
        self._texts = None
        if not self._state_users:
            self.state = SharedState(None)
        del self._expander, self._sequence, self._duties, self._transcript, self._goals

    def keep_state(self) -> None:
        """Keep the state behind the run's end for one more reader, until ``leave_state`` is called for it."""
        self._state_users += 1

    def leave_state(self) -> None:
        """Release the state if its last reader is done and the run is over."""
        self._state_users -= 1
        if not self._state_users and self._log.ended:
            self.state = SharedState(None)

    def _fold(self, event: BaseEvent) -> None:
        """A delta that does not apply is skipped by clients, so it is here; it is their warning, and ours."""
        try:
            self.state.feed(event)
        except ValueError as error:
            logger.warning("a STATE_DELTA does not apply, clients will skip it: %s", error)
