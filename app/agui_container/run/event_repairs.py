"""Repairs of events that agents and models commonly get wrong: call ids that are used again, and split symbols.

Rule: clients append the arguments of a second call with an id to the first one. So a call whose id the thread has gets
another one in all its events, until the agent sends a snapshot of its messages. A waiting call may be announced again.

Rule: the halves of a symbol in consecutive texts of one message or call are joined. Other halves become U+FFFD.
"""

from collections.abc import Sequence

from ag_ui.core import (
    BaseEvent,
    Interrupt,
    MessagesSnapshotEvent,
    ReasoningEncryptedValueEvent,
    ReasoningMessageContentEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextMessageContentEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from msgspec import Struct, field

from agui_container.protocol.grammar import TOOL_CALL
from agui_container.protocol.strict_json import REPLACEMENT, split_half, whole_text
from agui_container.protocol.validator import ProducerRules, RunSequence
from agui_core.turns import repeated_id, repeated_ids


class ThreadCallIds(Struct):
    """Ids of the calls of one run.

    ``waiting`` are ids of calls of the history that the run may announce again. ``repeated`` are those that it has used
    for other calls than the thread has.
    """

    sequence: RunSequence
    rules: ProducerRules
    waiting: set[str]
    repeated: set[str]
    _ids: dict[str, list[str]] = field(default_factory=dict)

    def rename(self, event: BaseEvent) -> BaseEvent:
        """Return the event with the id that its call has in the thread."""
        if isinstance(event, ToolCallStartEvent):
            self._begin(event.tool_call_id)
        elif isinstance(event, ToolCallResultEvent):
            self.waiting.discard(event.tool_call_id)
        return self._renamed(event) if self._ids else event

    def _begin(self, call_id: str) -> None:
        is_repeated = call_id in self.rules.known_calls and call_id not in self.waiting
        if is_repeated and not self.sequence.is_open(TOOL_CALL, self._latest(call_id)):
            self.repeated.add(call_id)
            made = len(list(repeated_ids(call_id, self.rules.known_calls)))
            self._ids.setdefault(call_id, [call_id]).append(repeated_id(call_id, made + 1))

    def _renamed(self, event: BaseEvent) -> BaseEvent:
        change: dict[str, object] = {}
        match event:
            case ToolCallStartEvent() | ToolCallArgsEvent() | ToolCallEndEvent():
                change["tool_call_id"] = self._latest(event.tool_call_id)
            case ToolCallResultEvent():
                change["tool_call_id"] = self._unanswered(event.tool_call_id)
            case ReasoningEncryptedValueEvent(subtype="tool-call"):
                change["entity_id"] = self._latest(event.entity_id)
            case RunFinishedEvent(outcome=RunFinishedInterruptOutcome() as outcome):
                change["outcome"] = RunFinishedInterruptOutcome(interrupts=[*map(self._asked, outcome.interrupts)])
            case MessagesSnapshotEvent():
                self._ids.clear()
        return event.model_copy(update=change) if change else event

    def _asked(self, interrupt: Interrupt) -> Interrupt:
        """Return the interrupt of a call with its id."""
        return interrupt.model_copy(update={"tool_call_id": self._unanswered(interrupt.tool_call_id or "") or None})

    def all_of(self, call_id: str) -> Sequence[str]:
        """Return the ids of the calls that the agent has made under an id, and the id itself."""
        return self._ids.get(call_id, [call_id])

    def _unanswered(self, call_id: str) -> str:
        """Return the id of the first call that the agent has made under an id and not answered, else of the last."""
        ids = self.all_of(call_id)
        return [*(each for each in ids if each in self.rules.open_calls()), ids[-1]][0]

    def _latest(self, call_id: str) -> str:
        return self.all_of(call_id)[-1]


DELTAS = (TextMessageContentEvent, ReasoningMessageContentEvent, ToolCallArgsEvent)


class PairJoiner:
    """Joins the halves of a symbol in consecutive texts of one message or call. Other halves become U+FFFD.

    It reads expanded events, because a chunk may leave out the id of its message. The first half of a pair is held
    until the next event, which may begin with the second one.
    """

    def __init__(self) -> None:
        self.held: BaseEvent | None = None
        """Like the last event, but with a half as its text, which the next one may continue. None without a half."""

    def feed(self, event: BaseEvent) -> Sequence[BaseEvent]:
        if self.held is None and not isinstance(event, DELTAS):
            return (event,)
        text = _text_of(event)
        if self.held is None and (text is None or text.isascii()):
            return (event,)
        if text is None:
            return *self.flush(), event
        before: Sequence[BaseEvent] = ()
        if self.held is not None and _is_continued(self.held, event):
            text, self.held = f"{_text_of(self.held)}{text}", None
        else:
            before = self.flush()
        whole, half = split_half(text)
        if half:
            self.held = _with_text(event, half)
        return (*before, _with_text(event, whole_text(whole))) if whole or not half else before

    def flush(self) -> Sequence[BaseEvent]:
        """Return U+FFFD as the text in place of a half that has no other."""
        held, self.held = self.held, None
        return () if held is None else (_with_text(held, REPLACEMENT),)


def _text_of(event: BaseEvent) -> str | None:
    text: object = event.__dict__.get("delta") if isinstance(event, DELTAS) else None
    return text if isinstance(text, str) else None


def _with_text(event: BaseEvent, text: str) -> BaseEvent:
    return event if _text_of(event) == text else event.model_copy(update={"delta": text})


def _is_continued(held: BaseEvent, event: BaseEvent) -> bool:
    return type(held) is type(event) and _target_of(held) == _target_of(event)


def _target_of(event: BaseEvent) -> tuple[object, ...]:
    names = ("message_id", "tool_call_id", "subagent_run_id")
    return tuple(getattr(event, name, None) for name in names)
