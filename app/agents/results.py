"""What a call of a server tool gives: content, and beside it whether it failed and how long it took.

Rule: the message that a model is told and the event that a client is shown say the same, so that the history which
comes back is the one that was there.
"""

from typing import Any

from ag_ui.core import ToolCallResultEvent, ToolMessage
from msgspec import Struct
from msgspec.structs import replace

from app.core.results import DURATION, FAILED
from app.ports import ToolContent


class Result(Struct, frozen=True):
    """The result of a call; ``metadata`` has the keys of ``core.results``, and is None where there is none to say."""

    content: ToolContent
    metadata: dict[str, Any] | None = None

    def after(self, seconds: float) -> "Result":
        """The same of a tool that ran as long."""
        return replace(self, metadata={**(self.metadata or {}), DURATION: round(seconds * 1000)})

    def message(self, message_id: str, call_id: str) -> ToolMessage:
        """It as a model is told."""
        return ToolMessage(id=message_id, tool_call_id=call_id, content=self.content, metadata=self.metadata)


def failure(text: str) -> Result:
    """The result of a call that went wrong, or was not run at all."""
    return Result(text, {FAILED: True})


def shown(result: ToolMessage) -> ToolCallResultEvent:
    """A tool message as the client sees it; the ids agree, so both keep the same history."""
    return ToolCallResultEvent(
        message_id=result.id,
        tool_call_id=result.tool_call_id,
        content=result.content,
        role="tool",
        metadata=result.metadata,
    )
