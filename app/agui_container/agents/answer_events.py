"""Events of a model's answer, for agents whose own events are translated here.

Rule: a message has the text, the reasoning and the calls of one call of the model. Ids of messages are made here,
because many models and frameworks have none.
"""

from ag_ui.core import (
    BaseEvent,
    ReasoningMessageChunkEvent,
    TextMessageChunkEvent,
    ToolCallChunkEvent,
    ToolCallResultEvent,
)

from agui_container.ports import RunContext


class AnswerEvents:
    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self.begin_message()

    def begin_message(self) -> None:
        self._message_id = self._ctx.new_id()

    def text(self, delta: str) -> BaseEvent:
        return TextMessageChunkEvent(message_id=self._message_id, role="assistant", delta=delta)

    def reasoning(self, delta: str) -> BaseEvent:
        return ReasoningMessageChunkEvent(message_id=f"{self._message_id}-reasoning", delta=delta)

    def call(self, call_id: str, arguments: str | None, name: str | None = None) -> BaseEvent:
        """Return a piece of a call. The first one has the name of the tool."""
        return ToolCallChunkEvent(
            tool_call_id=call_id, tool_call_name=name, parent_message_id=self._message_id, delta=arguments
        )

    def result(self, call_id: str, content: str) -> BaseEvent:
        return ToolCallResultEvent(message_id=self._ctx.new_id(), tool_call_id=call_id, content=content)
