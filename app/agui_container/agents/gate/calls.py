"""Tool calls, their results, and the notes that the journal of a turn stores of calls and questions.

Rules:
- A failure, a denial, a decision and the duration are in the metadata of a result, never in its text, which a tool may
  choose freely.
- The fields of the notes are the JSON that the store holds.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar

from ag_ui import core as ag
from ag_ui.core import BaseEvent, Interrupt, ToolMessage
from pydantic import BaseModel, ConfigDict, Field, StrictBool, TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticSerializationError, to_json

from agui_container.conversation.questions import TURN_NOTE, question_note_id
from agui_container.log_values import format_fields
from agui_container.ports import Suspension, ToolContent, ToolError
from agui_container.ports.records import ThreadNote
from agui_container.ports.tool import MAX_REASON
from agui_container.protocol.strict_json import json_text, parse_finite_json, without_large_integers
from agui_core.transcript import DECISION, DENIED, FAILED
from agui_core.turns import is_repeat

logger = logging.getLogger(__name__)
STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A tool call of a model. Its arguments are JSON text, which may be invalid.

    Attributes:
        complete: False if the arguments were cut off.
        encrypted_value: opaque value that the model expects with the call in the next prompt.
    """

    id: str
    name: str
    arguments: str
    complete: bool = True
    encrypted_value: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Name and canonical arguments, which equal calls share."""
        return self.name, json.dumps(json.loads(self.arguments or "{}"), sort_keys=True)

    def to_message_call(self) -> ag.ToolCall:
        function = ag.FunctionCall(name=self.name, arguments=self.arguments)
        return ag.ToolCall(id=self.id, function=function, encrypted_value=self.encrypted_value)

    def events(self) -> Sequence[BaseEvent]:
        return (
            ag.ToolCallStartEvent(tool_call_id=self.id, tool_call_name=self.name),
            ag.ToolCallArgsEvent(tool_call_id=self.id, delta=self.arguments),
            ag.ToolCallEndEvent(tool_call_id=self.id),
        )


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Content of the result of a call, for the model, and metadata with the keys of ``agui_core.transcript``."""

    content: ToolContent
    metadata: dict[str, Any] | None = None

    def marked(self, key: str, value: object) -> "ToolResult":
        return replace(self, metadata={**(self.metadata or {}), key: value})

    def to_message(self, message_id: str, call_id: str) -> ToolMessage:
        return ToolMessage(id=message_id, tool_call_id=call_id, content=self.content, metadata=self.metadata)


def failed_result(text: str) -> ToolResult:
    return ToolResult(text, {FAILED: True})


def denied_result(text: str) -> ToolResult:
    return ToolResult(text, {FAILED: True, DENIED: True})


def result_event(result: ToolMessage) -> ag.ToolCallResultEvent:
    """Return the event for a tool message, with the same ids, so that client and server have the same history."""
    return ag.ToolCallResultEvent(
        message_id=result.id,
        tool_call_id=result.tool_call_id,
        content=result.content,
        role="tool",
        metadata=result.metadata,
    )


def parse_arguments(text: str) -> Mapping[str, object]:
    """Raise ``ToolError`` for a text that is no JSON object. Models send an empty text for a call without arguments."""
    try:
        value = parse_finite_json(text or "{}")
    except ValueError as error:
        raise ToolError("the arguments are not valid JSON.") from error
    if not isinstance(value, dict):
        raise ToolError("the arguments are not a JSON object.")
    return value


# --- notes ------------------------------------------------------------------------------------------------------------


class ApprovalAnswer(BaseModel):
    """The payload of the entry of ``resume`` that answers an approval."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    approved: StrictBool
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = None
    edited_args: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class CallNote:
    """A call of a turn. Without a result it waits: for its approval, or for an answer to what it has asked itself.

    Attributes:
        call: the call as the agent made it, or as the answer edited it.
        turn: id of the turn, for an agent that is called again from its beginning; empty for the assistant's calls.
        number: number of the call among the equal calls of the turn, from 1; 0 for a call that a framework announced.
        edited_from: the arguments as the agent made them, if the answer edited them.
        interrupts: the interrupts that ask for an answer; empty for a call that ran without one.
        suspension: the state of a call that has started and waits; None for any other.
    """

    call: ModelToolCall
    turn: str = ""
    number: int = 0
    edited_from: str | None = None
    interrupts: Sequence[Interrupt] = ()
    suspension: Suspension | None = None
    answer: ApprovalAnswer | None = None
    result: ToolResult | None = None

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    @property
    def id(self) -> str:
        return self.call.id

    @property
    def is_settled(self) -> bool:
        return self.result is not None

    @property
    def is_rejected(self) -> bool:
        return self.answer is not None and not self.answer.approved

    @property
    def is_resumable(self) -> bool:
        """True if the call has started, and continues where it stopped."""
        return self.suspension is not None and self.suspension.is_resumable

    def is_made_by(self, call: ModelToolCall, number: int) -> bool:
        """Return True if a replay makes this call. A framework may make it again with the edited arguments."""
        asked = self.call if self.edited_from is None else replace(self.call, arguments=self.edited_from)
        if number or self.number:
            return (self.number, asked.key) == (number, call.key)
        return is_repeat(self.id, call.id) and call.key in {asked.key, self.call.key}

    def decided(self, answer: ApprovalAnswer | None) -> "CallNote":
        """Return the note with the answer, and with the edited arguments if there are any and it has not started."""
        note = replace(self, answer=answer)
        if self.suspension or answer is None or not answer.approved or answer.edited_args is None:
            return note
        edited = replace(self.call, arguments=to_json(answer.edited_args).decode())
        return replace(note, call=edited, edited_from=self.edited_from or self.call.arguments)

    def with_result(self, result: ToolResult) -> "CallNote":
        """Return the settled note. The result has the decision, so that a client can show it."""
        if self.answer is not None and self.suspension is None:
            result = result.marked(DECISION, self.answer.model_dump(by_alias=True, exclude_none=True))
        return replace(self, suspension=None, result=result)

    def suspended(self, suspension: Suspension) -> "CallNote":
        return replace(self, interrupts=suspension.interrupts, suspension=suspension, answer=None, result=None)


@dataclass(frozen=True, slots=True)
class QuestionNote:
    """A question that an agent asks itself, and the entry that answers it. The engine stores it with the run's end.

    Attributes:
        is_taken: True if the agent was called with the answer and did not refuse it.
        is_over: True if the turn of the question has ended.
    """

    question: Interrupt
    entry: ag.ResumeEntry | None = None
    is_taken: bool = False
    is_over: bool = False

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    @property
    def id(self) -> str:
        return question_note_id(self.question.id)

    @property
    def interrupts(self) -> Sequence[Interrupt]:
        return (self.question,)

    @property
    def is_settled(self) -> bool:
        return self.entry is not None


@dataclass(frozen=True, slots=True)
class TurnNote:
    """The latest turn of a thread, and the demands of its runs, as in ``CallRules``.

    ``is_ended`` is True if the agent is not called again for it. The demands hold until the client's tools have
    answered.
    """

    turn: str
    asks_always: bool = False
    cancels_on_denial: bool = False
    is_ended: bool = False

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    id: ClassVar[str] = TURN_NOTE
    is_settled: ClassVar[bool] = False
    interrupts: ClassVar[Sequence[Interrupt]] = ()


Note = CallNote | QuestionNote | TurnNote


@cache
def _adapter() -> TypeAdapter[Note]:
    """Return a JSON adapter. It is built with the first note, so that the server starts faster."""
    return TypeAdapter(Note)


def dump_note(note: Note) -> bytes:
    try:
        return without_large_integers(_adapter().dump_json(note, by_alias=True))
    except PydanticSerializationError:  # The usual reason is half of a surrogate pair.
        return json_text(_adapter().dump_python(note, by_alias=True)).encode()


def load_notes(records: Sequence[ThreadNote], now: float) -> list[Note]:
    """Return the notes in records that have not expired, but for those in a form that this version does not know."""
    notes = []
    for record in records:
        if record.until is None or record.until > now:
            try:
                notes.append(_adapter().validate_json(record.data))
            except ValueError:
                fields = format_fields({"call": record.id})
                logger.warning("stored note unreadable, call will not run %s", fields)
    return notes
