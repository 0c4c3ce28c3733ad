"""A tool call, and its result with the marks that models, clients and the thread read.

Rule: a failure, a denial, a decision and the duration are in the metadata, never in the text, which a tool may choose
freely.
"""

from dataclasses import dataclass
from typing import Any

from ag_ui.core import FunctionCall, ToolCall, ToolCallResultEvent, ToolMessage
from msgspec import Struct
from msgspec.structs import replace

from agui_container.ports import ToolContent
from agui_container.protocol.conversation.transcript import DENIED, DURATION, FAILED


@dataclass(frozen=True, slots=True)
class ModelToolCall:
    """A tool call of a model.

    Attributes:
        id: id of the call.
        name: name of the tool.
        arguments: JSON text, which may be invalid.
        complete: False if the arguments were cut off.
        encrypted_value: opaque value that the model expects with the call in the next prompt.
    """

    id: str
    name: str
    arguments: str
    complete: bool = True
    encrypted_value: str | None = None

    def to_message_call(self) -> ToolCall:
        """Return the call as an assistant message holds it."""
        function = FunctionCall(name=self.name, arguments=self.arguments)
        return ToolCall(id=self.id, function=function, encrypted_value=self.encrypted_value)


class ToolResult(Struct, frozen=True):
    """The result of a call.

    Attributes:
        content: text or parts for the model.
        metadata: the duration, the failure mark and the decision of a person, with the keys of
            ``protocol.conversation.transcript``, or None.
    """

    content: ToolContent
    metadata: dict[str, Any] | None = None

    def with_duration(self, seconds: float) -> "ToolResult":
        """Return a copy with the duration of the call. It is recorded in milliseconds."""
        return replace(self, metadata={**(self.metadata or {}), DURATION: round(seconds * 1000)})

    def to_message(self, message_id: str, call_id: str) -> ToolMessage:
        """Return the result as a tool message."""
        return ToolMessage(id=message_id, tool_call_id=call_id, content=self.content, metadata=self.metadata)


def failed_result(text: str) -> ToolResult:
    """Return the result of a call that failed or was not run."""
    return ToolResult(text, {FAILED: True})


def denied_result(text: str) -> ToolResult:
    """Return the result of a call that a person has denied or cancelled."""
    return ToolResult(text, {FAILED: True, DENIED: True})


def result_event(result: ToolMessage) -> ToolCallResultEvent:
    """Return the event for a tool message, with the same ids, so that client and server have the same history."""
    return ToolCallResultEvent(
        message_id=result.id,
        tool_call_id=result.tool_call_id,
        content=result.content,
        role="tool",
        metadata=result.metadata,
    )
