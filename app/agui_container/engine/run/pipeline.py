"""The one way into a run's log: expand, encode, validate, append.

Rule: what cannot be encoded, or is illegal now, is refused before anything depends on it, so the log is legal at every
moment. The shared state follows the log, because that is what the client has.
"""

import logging
from collections.abc import Callable, Sequence

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    Message,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateDeltaEvent,
)

from agui_container.engine.log.event_log import EventLog
from agui_container.engine.outcome import GoalStatusTracker, RunResult
from agui_container.ports import Item
from agui_container.ports.records import Change, StoredMessage
from agui_container.protocol.conversation.merge import dump_message, make_title, unanswered_calls
from agui_container.protocol.conversation.state import SharedState
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.delta_template import DeltaTemplate
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.expander import Expander
from agui_container.protocol.grammar import KINDS, TOOL_CALL, EventKind
from agui_container.protocol.validator import ProducerRules, RunSequence

logger = logging.getLogger(__name__)


class EventPipeline:
    """The pipeline of one run.

    Args:
        run_input: what is asked; it is not kept.
        new_id: makes the ids of messages.
        log: where accepted events go.

    Attributes:
        state: the shared state as the events make it.
        on_boundary: called with an event of the agent that begins or ends the run, which is the run's to do.
    """

    def __init__(self, run_input: RunAgentInput, new_id: Callable[[], str], log: EventLog) -> None:
        self.on_boundary: Callable[[BaseEvent], None] | None = None
        self._log = log
        self._expander = Expander(new_id)
        self._sequence = RunSequence()
        self._goals = GoalStatusTracker()
        self._template: DeltaTemplate | None = None
        self._state_users = 0
        self._is_released = False
        self.start_from(run_input)

    def start_from(self, run_input: RunAgentInput) -> None:
        """Begin with the complete input. Nothing has been accepted yet."""
        self.state = SharedState(run_input.state)
        self._duties = ProducerRules(run_input.messages, resumed=bool(run_input.resume))
        self._transcript = Transcript(run_input.messages)

    # --- what agents and tools send ---

    def submit(self, item: Item) -> bool:
        """Accept an item: a string, text of a message, or an event. Returns whether it took the fast path.

        If one of the events that it stands for is illegal, those before it stay accepted.

        Raises:
            IllegalEvent: the item is no event that the protocol knows, or is illegal now.
            AppError: RUN_LIMIT_EXCEEDED. The run has grown too large.
        """
        if not self._log.has_room:
            raise self._log.limit_error()
        template = self._template
        if template is not None:
            data = template.encode_next(item)
            if data is not None:
                self._log.append(template.event_type, data)
                return True
        self._submit_in_full(item)
        return False

    def _submit_in_full(self, item: Item) -> None:
        events, accepted = self._expander.expand(item), 0
        try:
            encoded = [b"" if KINDS[type(event)].is_boundary else encode(event) for event in events]
            for event, data in zip(events, encoded, strict=True):
                self._submit_event(event, data)
                accepted += 1
        finally:
            if accepted < len(events):
                self._expander.rollback(events[:accepted])
        if events and KINDS[type(events[-1])].is_delta:
            self._template = DeltaTemplate.of(item, events[-1], encoded[-1], self._transcript.last_text)

    def _submit_event(self, event: BaseEvent, data: bytes) -> None:
        kind = KINDS[type(event)]
        if not kind.is_boundary:
            self._accept(kind, event, data)
        elif self.on_boundary is not None:
            self.on_boundary(event)

    def submit_from_tool(self, item: Item) -> None:
        """Accept an item that does not come from the agent's own stream. Nothing after the run's end.

        Raises:
            IllegalEvent: as ``submit``, and for the run's first and last event, which are not a tool's to send.
            PatchError: a delta that does not apply to the state.
            AppError: RUN_LIMIT_EXCEEDED.
        """
        if self._log.has_ended:
            return
        if isinstance(item, RunStartedEvent | RunFinishedEvent | RunErrorEvent):
            raise IllegalEvent(f"{type(item).__name__} from a tool")
        if isinstance(item, StateDeltaEvent):
            self.state.check(item)
        self.submit(item)

    # --- what the engine writes ---

    def write(self, event: BaseEvent) -> None:
        """Encode and accept one event. Raises ``IllegalEvent`` and leaves everything as it was."""
        self._accept(KINDS[type(event)], event, encode(event))

    def write_encoded(self, event: BaseEvent, data: bytes) -> None:
        """Accept one event whose JSON is known. Raises ``IllegalEvent`` and leaves everything as it was."""
        self._accept(KINDS[type(event)], event, data)

    def close(self, failure: str | None) -> None:
        """Write what is still owed before a terminal event. ``failed_result`` is the message for subagents cut off."""
        for event in self._sequence.closers(failure):  # open chunk streams are among them
            self.write(event)

    def flush_chunks(self) -> None:
        """End the streams of chunks, which have no end of their own.

        Raises:
            AppError: RUN_LIMIT_EXCEEDED, if the agent's last event made the run too large.
        """
        for event in self._expander.flush():
            self.write(event)
        if not self._log.has_room:
            raise self._log.limit_error()

    def _accept(self, kind: EventKind, event: BaseEvent, data: bytes) -> None:
        """Validate an encoded event and append it."""
        self._template = None
        if kind.affects_calls:
            self._duties.check(event)
        self._sequence.feed_kind(kind, event)
        if kind.affects_calls:
            self._duties.feed(event)
        if kind.affects_messages:
            self._transcript.feed_kind(kind, event)
        elif isinstance(event, CustomEvent):
            self._goals.feed(event)
        if kind.changes_state:
            self._apply_to_state(event)
        self._log.append(kind.type, data)

    def _apply_to_state(self, event: BaseEvent) -> None:
        try:
            self.state.feed(event)
        except ValueError as error:
            logger.warning("STATE_DELTA does not apply, clients will skip it: %s", error)

    # --- what a run has produced ---

    def pending_calls(self) -> list[str]:
        """The calls of this run that have no result.

        Raises:
            IllegalEvent: a call is still open. Closing it would tell a client to run it with arguments that may be
                incomplete.
        """
        if self._sequence.is_open(TOOL_CALL):
            raise IllegalEvent("the run finished with a tool call open")
        return self._duties.open_calls()

    def result(self, run_id: str) -> RunResult:
        """What the run leaves to its thread. Without messages if they cannot be told, because a run must end."""
        try:
            messages = self._transcript.messages
            return RunResult(self._change(run_id, messages), bool(unanswered_calls(messages)), self._goals.failed)
        except Exception:
            logger.exception("result of the run cannot be stored run=%s", run_id)
            return RunResult(has_failed_goals=self._goals.failed)

    def _change(self, run_id: str, messages: Sequence[Message]) -> Change:
        changed = self._transcript.changed(messages)
        return Change(
            messages=[StoredMessage(message.id, dump_message(message), run_id) for message in changed],
            order=self._transcript.order,
            state=self.state.json() if self.state.is_new else None,
            title=make_title(messages),
        )

    def release(self) -> None:
        """Let go of what an ended run needs no more, because its log is kept for a while. Nothing more may come.

        The state stays as long as the agent or its background work may read it.
        """
        self._template, self.on_boundary, self._is_released = None, None, True
        del self._expander, self._sequence, self._duties, self._transcript, self._goals
        self._drop_unused_state()

    def keep_state(self) -> None:
        """Keep the state after the run's end for one more user, until ``leave_state`` is called for it."""
        self._state_users += 1

    def leave_state(self) -> None:
        """Release the state if its last user is done and the run is over."""
        self._state_users -= 1
        self._drop_unused_state()

    def _drop_unused_state(self) -> None:
        if self._is_released and not self._state_users:
            self.state = SharedState(None)
