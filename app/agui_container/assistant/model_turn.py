"""Translation of one model call: model deltas in, AG-UI events and the resulting messages out.

Rule: reasoning ends before text starts, and text ends before a call starts. ``close`` ends everything that is open. No
await and no I/O. ``feed`` runs for every token, so text is yielded as ``MessageText`` and not as an event.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    Message,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from msgspec import Struct, field

from agui_container.agents.gate.calls import ModelToolCall
from agui_container.assistant.history import UNUSABLE, question_parts
from agui_container.ports import (
    Delta,
    EncryptedDelta,
    Item,
    MediaDroppedDelta,
    MessageText,
    ReasoningDelta,
    RunContext,
    StopReason,
    TextDelta,
    ToolCallDelta,
    UsageDelta,
)
from agui_container.ports.notices import MEDIA_DROPPED, MODEL_STOPPED
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.protocol.strict_json import split_half, whole_text
from agui_core.transcript import STOP_REASON

MAX_CALLS = 1_000
"""Maximum number of calls in one answer of a model, because the calls of an answer run concurrently."""

CUT_SHORT = frozenset({StopReason.LENGTH, StopReason.FILTERED})
"""Stop reasons after which the last text or call may be incomplete."""

LOST_HALF = "\ufffd"
"""Text in place of the first half of a symbol whose other half does not come."""


class _PartialCall(Struct):
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)
    half: str = ""
    encrypted_value: str | None = None


class _ReasoningBlock(Struct):
    id: str
    texts: list[str] = field(default_factory=list)
    encrypted_value: str | None = None


class _TextBlock(Struct):
    id: str
    texts: list[str] = field(default_factory=list)


_Open = Literal["nothing", "reasoning", "text"]  # An Enum lookup would dominate the cost of ``feed``.

Items = Sequence[Item]
Events = Sequence[BaseEvent]


class MediaReports:
    """Reports of the parts that the model cannot take: CUSTOM ``media.dropped``, once per part and run.

    Models report before they are called, so a run whose question has no other parts ends here, whatever the model is.

    Args:
        messages: messages at the start of the run. Those that the assistant has answered were reported before.
    """

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._reported: set[tuple[str, int]] = set()
        self._question = question_parts(messages)
        answers = [at for at, message in enumerate(messages, 1) if isinstance(message, AssistantMessage)]
        self._answered = {message.id for message in messages[: answers[-1] if answers else 0]}

    def events(self, delta: MediaDroppedDelta) -> Iterator[BaseEvent]:
        """Yield the event of a report, once per part. Raises ``AppError`` if nothing is left of the user's question."""
        key = (delta.message_id, delta.index)
        if delta.message_id in self._answered or key in self._reported:
            return
        self._reported.add(key)
        value = {"part": delta.part, "reason": delta.reason, "messageId": delta.message_id}
        yield CustomEvent(name=MEDIA_DROPPED, value=value)
        if key in self._question and self._question <= self._reported:
            raise validation_error(UNUSABLE.format(reason=delta.reason))


class ModelTurn:
    """Collects one model call. Each reasoning block is its own message.

    Text and calls share one assistant message, until reasoning follows its text. The next text or call begins another
    one, so that the messages have the order of the model's blocks. All calls are in the last one, because they are
    answered together: after the first call no other message begins.
    """

    def __init__(self, ctx: RunContext, media_reports: MediaReports | None = None) -> None:
        self._media_reports = media_reports or MediaReports()
        self._ctx = ctx
        self._open: _Open = "nothing"
        self._half = ""  # of a symbol, at the end of the open text or reasoning
        self._text_block = _TextBlock(ctx.new_id())
        self._blocks: list[_ReasoningBlock | _TextBlock] = []
        """Blocks in the order in which the model began them."""
        self._calls: dict[int, _PartialCall] = {}
        self.stop = StopReason.END
        self.usage: list[TokenUsage] = []

    def feed(self, delta: Delta) -> Iterable[Item]:
        """Raise ``AppError`` for a call without a name, too many calls, or if no part of the question is left."""
        if isinstance(delta, TextDelta):
            return self._text(delta.text)
        if isinstance(delta, ReasoningDelta):
            return self._reasoning(delta.text)
        if isinstance(delta, ToolCallDelta):
            return self._call(delta)
        if isinstance(delta, EncryptedDelta):
            return self._encrypted(delta.value)
        if isinstance(delta, MediaDroppedDelta):
            return self._media_reports.events(delta)
        if isinstance(delta, UsageDelta):
            self.usage.append(delta.usage)
            self._ctx.usage.append(delta.usage)
        else:
            self.stop = delta.reason
        return ()

    def close(self) -> Events:
        """Return the events that end all open parts, and CUSTOM ``model.stopped`` with the reason of a cut answer."""
        ends = [event for call in self._calls.values() for event in self._end_call(call)]
        if self.stop in CUT_SHORT:
            return *self._close_open(), *ends, CustomEvent(name=MODEL_STOPPED, value={"reason": self.stop})
        return *self._close_open(), *ends

    @property
    def _reason_of_cut(self) -> dict[str, object] | None:
        return {STOP_REASON: self.stop} if self.stop in CUT_SHORT else None

    @property
    def calls(self) -> Sequence[ModelToolCall]:
        calls = [
            ModelToolCall(call.id, call.name, "".join(call.arguments), encrypted_value=call.encrypted_value)
            for call in self._calls.values()
        ]
        if calls and self.stop in CUT_SHORT:
            calls[-1] = replace(calls[-1], complete=False)
        return calls

    @property
    def text(self) -> str:
        return "".join(text for block in self._blocks if isinstance(block, _TextBlock) for text in block.texts)

    @property
    def message_id(self) -> str:
        """Id of the assistant message that the next text or call belongs to, unless reasoning comes first."""
        return self._text_block.id

    @property
    def messages(self) -> Sequence[Message]:
        """Reasoning and assistant messages of this turn, for the next model call."""
        last = self._text_block
        blocks = self._blocks if last in self._blocks else [*self._blocks, last]
        return [self._message(block, has_calls=block is last) for block in blocks]

    def _message(self, block: _ReasoningBlock | _TextBlock, *, has_calls: bool) -> Message:
        text = "".join(block.texts)
        if isinstance(block, _ReasoningBlock):
            return ReasoningMessage(id=block.id, content=text, encrypted_value=block.encrypted_value)
        tool_calls = [call.to_message_call() for call in self.calls] if has_calls else []
        return AssistantMessage(id=block.id, content=text or None, tool_calls=tool_calls or None)

    def _text(self, text: str) -> Items:
        if not text:
            return ()
        if self._open == "text" and text.isascii() and not self._half:
            self._text_block.texts.append(text)
            return (MessageText(self._text_block.id, text),)
        opened = () if self._open == "text" else self._start_text()
        text = self._with_half(text)
        self._text_block.texts.append(text)
        return (*opened, MessageText(self._text_block.id, text)) if text else opened

    def _start_text(self) -> Events:
        closed = self._close_open()
        self._open = "text"
        block = self._next_text_block()
        return *closed, TextMessageStartEvent(message_id=block.id, role="assistant")

    def _next_text_block(self) -> _TextBlock:
        if self._text_block not in self._blocks:
            self._blocks.append(self._text_block)
        elif self._blocks[-1] is not self._text_block and not self._calls:
            self._text_block = _TextBlock(self._ctx.new_id())
            self._blocks.append(self._text_block)
        return self._text_block

    def _with_half(self, text: str) -> str:
        """Return the next piece of the open text or reasoning, without half of a symbol at its end, which is kept."""
        text, self._half = split_half(self._half + text)
        return whole_text(text)

    def _reasoning(self, text: str) -> Events:
        if not text:
            return ()
        opened = () if self._open == "reasoning" else self._start_reasoning()
        block, text = self._reasoning_block, self._with_half(text)
        block.texts.append(text)
        content = ReasoningMessageContentEvent(message_id=block.id, delta=text) if text else None
        return (*opened, content) if content else opened

    def _start_reasoning(self) -> Events:
        closed = self._close_open()
        self._open = "reasoning"
        block = self._reasoning_block = _ReasoningBlock(self._ctx.new_id())
        self._blocks.append(block)
        return (
            *closed,
            ReasoningStartEvent(message_id=block.id),
            ReasoningMessageStartEvent(message_id=block.id, role="reasoning"),
        )

    def _encrypted(self, value: str) -> Events:
        opened = () if self._open == "reasoning" else self._start_reasoning()
        block = self._reasoning_block
        block.encrypted_value = value
        encrypted = ReasoningEncryptedValueEvent(subtype="message", entity_id=block.id, encrypted_value=value)
        return *opened, encrypted, *self._close_open()

    def _call(self, delta: ToolCallDelta) -> Events:
        call = self._calls.get(delta.index)
        opened = () if call else self._close_open()
        if call is None:
            if delta.name is None:
                raise AppError(ErrorCode.MODEL_ERROR, "The model sent a tool call without a name.")
            if len(self._calls) == MAX_CALLS:
                raise AppError(ErrorCode.RUN_LIMIT_EXCEEDED, f"The model made more than {MAX_CALLS} calls at once.")
            block = self._next_text_block()
            call = self._calls[delta.index] = _PartialCall(self._ctx.new_id(), whole_text(delta.name))
            start = ToolCallStartEvent(tool_call_id=call.id, tool_call_name=call.name, parent_message_id=block.id)
            opened = (*opened, start)
        arguments, call.half = split_half(call.half + delta.arguments)
        return *opened, *_argument_events(call, whole_text(arguments)), *_encrypted_events(call, delta)

    def _end_call(self, call: _PartialCall) -> Events:
        is_cut = self.stop in CUT_SHORT and call is list(self._calls.values())[-1]
        rest = LOST_HALF if call.half else ""
        if not rest and not is_cut and not any(map(str.strip, call.arguments)):
            rest = "{}"
        call.half = ""
        return *_argument_events(call, rest), ToolCallEndEvent(tool_call_id=call.id)

    def _close_open(self) -> Events:
        was, half = self._open, self._half
        self._open, self._half = "nothing", ""
        events: list[BaseEvent] = []
        if was == "text":
            if half:
                self._text_block.texts.append(LOST_HALF)
                events.append(TextMessageContentEvent(message_id=self._text_block.id, delta=LOST_HALF))
            events.append(TextMessageEndEvent(message_id=self._text_block.id, metadata=self._reason_of_cut))
        elif was == "reasoning":
            block = self._reasoning_block
            if half:
                block.texts.append(LOST_HALF)
                events.append(ReasoningMessageContentEvent(message_id=block.id, delta=LOST_HALF))
            events.append(ReasoningMessageEndEvent(message_id=block.id, metadata=self._reason_of_cut))
            events.append(ReasoningEndEvent(message_id=block.id))
        return events


def _argument_events(call: _PartialCall, arguments: str) -> Events:
    if not arguments:
        return ()
    call.arguments.append(arguments)
    return (ToolCallArgsEvent(tool_call_id=call.id, delta=arguments),)


def _encrypted_events(call: _PartialCall, delta: ToolCallDelta) -> Events:
    if delta.encrypted_value is None:
        return ()
    call.encrypted_value = delta.encrypted_value
    return (
        ReasoningEncryptedValueEvent(subtype="tool-call", entity_id=call.id, encrypted_value=delta.encrypted_value),
    )
