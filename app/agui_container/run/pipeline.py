"""The only way into a run's log: expand, join split symbols, encode, validate, append.

Rule: an event that cannot be encoded, or is illegal at this point, is refused before it changes anything, so the log is
always legal. The shared state follows the log, because clients have the state that the log describes.

Rule: model output is a stream of events that differ only in ``delta``. Once one delta has been validated in full, the
next one is encoded without validating it again if nothing else was emitted in between, it targets the same message or
tool call, and every other field is equal (``DeltaTemplate``). This is safe because a delta opens and closes nothing.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    EventType,
    Message,
    ReasoningMessageContentEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    TextMessageContentEvent,
    ToolCallArgsEvent,
)
from orjson import dumps

from agui_container.conversation.agent_input import results_with_reason, with_sent_results
from agui_container.conversation.message_json import dump_message
from agui_container.conversation.state import SharedState
from agui_container.conversation.stored_parts import cut_off_event
from agui_container.log_values import format_fields
from agui_container.ports import Item
from agui_container.ports.notices import NOTICES
from agui_container.ports.records import Change, StoredMessage
from agui_container.protocol.encoder import encode_whole
from agui_container.protocol.grammar import KINDS, TOOL_CALL, EventKind
from agui_container.protocol.validator import ProducerRules, RunSequence
from agui_container.run.endings import RunResult
from agui_container.run.event_log import EventLog
from agui_container.run.event_repairs import PairJoiner, ThreadCallIds
from agui_container.run.notes import MAX_NOTICES, Entry, notice_entry, question_entries
from agui_core.expander import MAX_DELTA, Expander, IllegalEvent, MessageText
from agui_core.transcript import Transcript
from agui_core.turns import open_calls, unanswered_calls

logger = logging.getLogger(__name__)

NO_STATE = SharedState(None)
"""State of a run that has not begun, or that has ended. No event changes it."""

DELTA_CLASSES: Mapping[type[BaseEvent], EventType] = {
    TextMessageContentEvent: EventType.TEXT_MESSAGE_CONTENT,
    ToolCallArgsEvent: EventType.TOOL_CALL_ARGS,
    ReasoningMessageContentEvent: EventType.REASONING_MESSAGE_CONTENT,
}
"""Delta classes and their types. Subclasses are excluded, because they may have more fields."""

PER_EVENT_FIELDS = ("timestamp", "raw_event", "metadata")
"""Fields that describe a single event, so the next delta does not repeat them."""

CLOSING = b"}"


class DeltaTemplate:
    """Pattern for the next delta of a run. ``head`` is the JSON of the last one up to its ``delta``."""

    __slots__ = ("_append", "_fields", "_head", "_item_type", "_message_id", "event_type")

    def __init__(
        self, item: BaseEvent | MessageText | str, event: BaseEvent, head: bytes, transcript: Transcript
    ) -> None:
        self.event_type = DELTA_CLASSES[type(event)]
        self._item_type = type(item)
        self._head = head
        self._message_id = item.message_id if isinstance(item, MessageText) else None
        self._fields = dict(event.__dict__)
        self._append = transcript.append

    @classmethod
    def of(
        cls, item: BaseEvent | MessageText | str, event: BaseEvent, data: bytes, transcript: Transcript
    ) -> "DeltaTemplate | None":
        """Return the template after an accepted item, or None if the next item must be validated in full."""
        if not transcript.knows_last_delta or type(event) not in DELTA_CLASSES or event.__pydantic_extra__:
            return None
        is_text = type(item) is str or type(item) is MessageText
        if not is_text and (item is not event or any(event.__dict__[name] is not None for name in PER_EVENT_FIELDS)):
            return None
        tail = dumps(event.__dict__["delta"]) + CLOSING
        return cls(item, event, data[: -len(tail)], transcript) if data.endswith(tail) else None

    def encode_next(self, item: BaseEvent | MessageText | str) -> bytes | None:
        """Append the item if only its ``delta`` differs. None changes nothing: the item takes the normal path."""
        if type(item) is not self._item_type:
            return None
        if type(item) is str:
            delta = item or None  # an empty string is no event
        elif type(item) is MessageText:
            delta = item.delta if item.message_id == self._message_id else None
        else:
            fields = item.__dict__
            self._fields["delta"] = delta = fields.get("delta")
            if fields != self._fields or item.__pydantic_extra__:  # type: ignore[union-attr] # an event by its type
                return None
        if type(delta) is not str or len(delta) > MAX_DELTA:
            return None
        try:
            self._append(delta)
        except UnicodeEncodeError:  # half of a surrogate pair
            return None
        return self._head + dumps(delta) + CLOSING


class EventPipeline:
    def __init__(self, new_id: Callable[[], str], log: EventLog) -> None:
        self.on_boundary: Callable[[BaseEvent], None] | None = None
        self.on_first_event: Callable[[], None] | None = None
        self._log = log
        self._joiner = PairJoiner()
        self._expander = Expander(new_id)
        self._sequence = RunSequence()
        self._entries: list[Entry] = []
        self._template: DeltaTemplate | None = None
        self.state = NO_STATE
        self._state_users = 0
        self._is_released = False

    def start_from(self, run_input: RunAgentInput, repeated_calls: set[str]) -> None:
        """Begin with the complete input, before the first event. No reference to it is stored.

        ``repeated_calls`` gets the ids that the agent uses again for another call.
        """
        self.state = SharedState(run_input.state)
        self._rules = ProducerRules(run_input.messages, resumed=bool(run_input.resume))
        self._transcript = Transcript(run_input.messages)
        waiting = {call.id for call in unanswered_calls(run_input.messages)} if run_input.resume else set[str]()
        self._call_ids = ThreadCallIds(self._sequence, self._rules, waiting, repeated_calls)
        self._sent_results = results_with_reason(run_input.messages)

    # --- items of agents and tools ---

    def submit(self, item: Item) -> bool:
        """Return True for the fast path. If one event of several is illegal, those before it stay accepted."""
        if not self._log.has_room:
            raise self._log.limit_error()
        template = self._template
        if template is not None:
            data = template.encode_next(item)
            if data is not None:
                self._log.append(template.event_type, data)
                return True
        self._submit_in_full(item)
        if self._joiner.held is not None:
            self._template = None
        return False

    def _submit_in_full(self, item: Item) -> None:
        events = [whole for event in self._expander.expand(item) for whole in self._joiner.feed(event)]
        accepted = 0
        try:
            repaired = list(map(self._call_ids.rename, events))
            if self._sent_results:
                repaired = [with_sent_results(event, self._sent_results) for event in repaired]
            encoded = [(event, b"") if KINDS[type(event)].is_boundary else encode_whole(event) for event in repaired]
            for event, data in encoded:
                kind = KINDS[type(event)]
                if not kind.is_boundary:
                    self._accept(kind, event, data)
                    if self.on_first_event is not None:
                        self.on_first_event()
                        self.on_first_event = None
                elif self.on_boundary is not None:
                    self.on_boundary(event)
                accepted += 1
        finally:
            if accepted < len(events):
                self._expander.rollback(events[:accepted])
                self._joiner = PairJoiner()  # without the half of an event that was refused
        if encoded and KINDS[type(events[-1])].is_delta:
            self._template = DeltaTemplate.of(item, *encoded[-1], self._transcript)

    def submit_from_tool(self, item: Item) -> None:
        """Accept an item that does not come from the agent's own stream. Ignore it after the end of the run.

        Raises:
            IllegalEvent: as ``submit``, and for the first and last event of a run, which tools must not send.
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

    # --- events of the engine ---

    def write(self, event: BaseEvent) -> None:
        """Encode and accept one event. Raises ``IllegalEvent`` and leaves everything as it was."""
        self._accept(KINDS[type(event)], *encode_whole(event))

    def write_encoded(self, event: BaseEvent, data: bytes) -> None:
        """As ``write``, for an event whose JSON is known."""
        self._accept(KINDS[type(event)], event, data)

    def close(self, failure: str | None, started_calls: Collection[str] = ()) -> None:
        """Close all that is open. If ``failure`` is not None, the calls that were started get a result."""
        for event in self._sequence.closers(failure):  # includes open chunk streams
            self.write(event)
        if failure is not None and started_calls:
            unanswered = {call.id for call in unanswered_calls(self._transcript.messages)}
            started = {id_ for call_id in started_calls for id_ in self._call_ids.all_of(call_id)}
            for call_id in sorted(unanswered & started):
                self.write(cut_off_event(call_id))

    def flush_chunks(self) -> None:
        """End the open chunk streams, and a text that ends in half a symbol. Raises ``AppError`` RUN_LIMIT_EXCEEDED."""
        for event in (*self._joiner.flush(), *self._expander.flush()):
            self.write(self._call_ids.rename(event))
        if not self._log.has_room:
            raise self._log.limit_error()

    def _accept(self, kind: EventKind, event: BaseEvent, data: bytes) -> None:
        self._template = None
        if kind.affects_calls:
            self._rules.check(event)
        self._sequence.feed_kind(kind, event)
        if kind.affects_calls:
            self._rules.feed(event)
        if kind.affects_messages:
            self._transcript.feed(event)
        elif isinstance(event, CustomEvent) and event.name in NOTICES and len(self._entries) < MAX_NOTICES:
            self._entries.append(notice_entry(event, data, self._transcript.last_id))
        elif isinstance(event, RunFinishedEvent) and isinstance(event.outcome, RunFinishedInterruptOutcome):
            self._entries += question_entries(event.outcome, self._transcript.last_id)
        if kind.changes_state:
            self._apply_to_state(event)
        self._log.append(kind.type, data)

    def _apply_to_state(self, event: BaseEvent) -> None:
        try:
            self.state.feed(event)
        except ValueError as error:
            logger.warning("STATE_DELTA does not apply, clients will skip it %s", format_fields({"error": error}))

    # --- results ---

    def pending_calls(self) -> list[str]:
        """Return the ids of this run's calls that have no result.

        Raises:
            IllegalEvent: a call is still open. If it were closed, a client would run it with arguments that may be
                incomplete.
        """
        if self._sequence.is_open(TOOL_CALL):
            raise IllegalEvent("the run finished with a tool call open")
        return self._rules.open_calls()

    def result(self, run_id: str) -> RunResult:
        """Return the result for the thread. It has no messages if they are invalid, because a run must end."""
        try:
            messages = self._transcript.messages
            return RunResult(self._change(run_id, messages), bool(open_calls(messages)), self._entries)
        except Exception:
            logger.exception("result of the run cannot be stored %s", format_fields({"run": run_id}))
            return RunResult()

    def _change(self, run_id: str, messages: Sequence[Message]) -> Change:
        changed = self._transcript.changed(messages)
        return Change(
            messages=[StoredMessage(message.id, dump_message(message), run_id) for message in changed],
            order=self._transcript.order(messages),
            state=self.state.changed_json(),
        )

    def release(self) -> None:
        """Free what an ended run does not need. The state stays as long as the agent or background work may read it."""
        self._template, self.on_boundary, self._is_released = None, None, True
        del self._expander, self._sequence, self._rules, self._transcript, self._entries, self._call_ids
        del self._sent_results
        self._drop_unused_state()

    def acquire_state(self) -> None:
        """Keep the state for one more user, until ``release_state`` is called for it."""
        self._state_users += 1

    def release_state(self) -> None:
        """Free the state if its last user is done and the run has ended."""
        self._state_users -= 1
        self._drop_unused_state()

    def _drop_unused_state(self) -> None:
        if self._is_released and not self._state_users:
            self.state = NO_STATE
