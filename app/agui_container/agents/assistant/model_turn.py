"""Translation of one model call: model deltas in, AG-UI events and the resulting messages out.

Rule: reasoning ends before text starts, and text ends before a call starts. ``close`` ends everything that is open. No
await and no I/O. ``feed`` runs for every token, so text is yielded as ``MessageText`` and not as an event (decision
0031).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    FunctionCall,
    Message,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from msgspec import Struct, field

from agui_container.ports import (
    Delta,
    EncryptedDelta,
    Item,
    MessageText,
    ReasoningDelta,
    RunContext,
    StopReason,
    TextDelta,
    ToolCallDelta,
    UsageDelta,
)
from agui_container.protocol.errors import AppError, ErrorCode

MAX_CALLS = 1_000
"""Maximum number of calls in one answer of a model, because the calls of an answer run concurrently."""

CUT_SHORT = frozenset({StopReason.LENGTH, StopReason.FILTERED})
"""Stop reasons after which the last text or call may be incomplete."""


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A tool call of a model. ``arguments`` may be invalid JSON, and it is cut off if the call is not ``complete``."""

    id: str
    name: str
    arguments: str
    complete: bool = True


class _PartialCall(Struct):
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)


class _ReasoningBlock(Struct):
    id: str
    texts: list[str] = field(default_factory=list)
    encrypted_value: str | None = None


class _TextBlock(Struct):
    """Text of one assistant message."""

    id: str
    texts: list[str] = field(default_factory=list)


_Open = Literal["nothing", "reasoning", "text"]  # An Enum lookup would dominate the cost of ``feed``.

Items = Sequence[Item]
Events = Sequence[BaseEvent]


class ModelTurn:
    """Collects one model call. Each reasoning block is its own message.

    Text and calls share one assistant message, until reasoning follows its text. The next text or call begins another
    one, so that the messages have the order of the model's blocks. All calls are in the last one, because they are
    answered together: after the first call no other message begins.
    """

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self._open: _Open = "nothing"
        self._text_block = _TextBlock(ctx.new_id())
        self._blocks: list[_ReasoningBlock | _TextBlock] = []
        """Blocks in the order in which the model began them."""
        self._calls: dict[int, _PartialCall] = {}
        self.stop = StopReason.END
        self.usage: list[TokenUsage] = []

    def feed(self, delta: Delta) -> Items:
        """Return the events and text of one delta.

        Raises:
            AppError: MODEL_ERROR for a call without a name, RUN_LIMIT_EXCEEDED for too many calls.
        """
        if isinstance(delta, TextDelta):
            return self._text(delta.text)
        if isinstance(delta, ReasoningDelta):
            return self._reasoning(delta.text)
        if isinstance(delta, ToolCallDelta):
            return self._call(delta)
        if isinstance(delta, EncryptedDelta):
            return self._encrypted(delta.value)
        if isinstance(delta, UsageDelta):
            self.usage.append(delta.usage)
            self._ctx.usage.append(delta.usage)
        else:
            self.stop = delta.reason
        return ()

    def close(self) -> Events:
        """Return the events that end all open parts, and CUSTOM ``model.stopped`` with the reason of a cut answer."""
        ends = (ToolCallEndEvent(tool_call_id=call.id) for call in self._calls.values())
        if self.stop in CUT_SHORT:
            return *self._close_open(), *ends, CustomEvent(name="model.stopped", value={"reason": self.stop})
        return *self._close_open(), *ends

    @property
    def calls(self) -> Sequence[ModelToolCall]:
        """Calls in the order in which the model started them."""
        calls = [ModelToolCall(call.id, call.name, "".join(call.arguments)) for call in self._calls.values()]
        if calls and self.stop in CUT_SHORT:
            calls[-1] = replace(calls[-1], complete=False)
        return calls

    @property
    def text(self) -> str:
        """Text of the answer so far."""
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
        calls = self.calls if has_calls else ()
        tool_calls = [ToolCall(id=c.id, function=FunctionCall(name=c.name, arguments=c.arguments)) for c in calls]
        return AssistantMessage(id=block.id, content=text or None, tool_calls=tool_calls or None)

    def _text(self, text: str) -> Items:
        if not text:
            return ()
        if self._open == "text":
            self._text_block.texts.append(text)
            return (MessageText(self._text_block.id, text),)
        closed = self._close_open()
        self._open = "text"
        block = self._next_text_block()
        block.texts.append(text)
        # After a call the same message id starts again, and the client appends to the message.
        start = TextMessageStartEvent(message_id=block.id, role="assistant")
        return *closed, start, MessageText(block.id, text)

    def _next_text_block(self) -> _TextBlock:
        """Return the block of the next text or call: a new one after reasoning that follows text."""
        if self._text_block not in self._blocks:
            self._blocks.append(self._text_block)
        elif self._blocks[-1] is not self._text_block and not self._calls:
            self._text_block = _TextBlock(self._ctx.new_id())
            self._blocks.append(self._text_block)
        return self._text_block

    def _reasoning(self, text: str) -> Events:
        if not text:
            return ()
        opened = () if self._open == "reasoning" else self._start_reasoning()
        self._reasoning_block.texts.append(text)
        return *opened, ReasoningMessageContentEvent(message_id=self._reasoning_block.id, delta=text)

    def _start_reasoning(self) -> Events:
        """Start a block of reasoning."""
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
        """Attach the encrypted value to the current block of reasoning, and end the block."""
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
            call = self._calls[delta.index] = _PartialCall(self._ctx.new_id(), delta.name)
            start = ToolCallStartEvent(tool_call_id=call.id, tool_call_name=call.name, parent_message_id=block.id)
            opened = (*opened, start)
        if not delta.arguments:
            return opened
        call.arguments.append(delta.arguments)
        return *opened, ToolCallArgsEvent(tool_call_id=call.id, delta=delta.arguments)

    def _close_open(self) -> Events:
        was, self._open = self._open, "nothing"
        if was == "text":
            return (TextMessageEndEvent(message_id=self._text_block.id),)
        if was == "reasoning":
            return (
                ReasoningMessageEndEvent(message_id=self._reasoning_block.id),
                ReasoningEndEvent(message_id=self._reasoning_block.id),
            )
        return ()
