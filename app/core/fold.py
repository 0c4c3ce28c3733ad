"""Events to messages: the conversation that a client has after a run's events.

Rule: pure, and the same result as the official client's, message for message. Text is joined when it is asked for, so a
token costs an append. Source: AG-UI spec 1.1, events/*; ``defaultApplyEvents`` of ``@ag-ui/client`` 1.0.0.
"""

from collections.abc import Iterable, Mapping

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    DeveloperMessage,
    FunctionCall,
    Message,
    MessagesSnapshotEvent,
    ReasoningEncryptedValueEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageStartEvent,
    SystemMessage,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
)

ROLES: Mapping[str, type[AssistantMessage | UserMessage | SystemMessage | DeveloperMessage]] = {
    "assistant": AssistantMessage,
    "user": UserMessage,
    "system": SystemMessage,
    "developer": DeveloperMessage,
}


class Transcript:
    """A conversation that grows by events (chunks already expanded, order already checked).

    Args:
        messages: what was said before.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: dict[str, Message] = {message.id: message for message in messages}
        self._texts: dict[str, list[str]] = {}
        self._holders: dict[str, str] = {}
        self._arguments: dict[str, list[str]] = {}

    def feed(self, event: BaseEvent) -> None:
        """Take one event; those that say nothing of messages change nothing."""
        match event:
            case TextMessageContentEvent() | ReasoningMessageContentEvent():
                self._text(event)
            case ToolCallArgsEvent():
                self._call_arguments(event)
            case TextMessageStartEvent():
                self._text_start(event)
            case ReasoningMessageStartEvent():
                self._reasoning_start(event)
            case ReasoningEncryptedValueEvent():
                self._seal(event)
            case ToolCallStartEvent():
                self._call_start(event)
            case ToolCallResultEvent():
                self._call_result(event)
            case MessagesSnapshotEvent():
                self._snapshot(event)

    @property
    def messages(self) -> list[Message]:
        """The conversation so far, in order."""
        for key, pieces in self._texts.items():
            message = self._messages[key]
            text = "".join([str(getattr(message, "content", None) or ""), *pieces])
            self._messages[key] = message.model_copy(update={"content": text})
        self._texts.clear()
        for call_id, pieces in self._arguments.items():
            self._extend_call(call_id, "".join(pieces))
        self._arguments.clear()
        return list(self._messages.values())

    def _extend_call(self, call_id: str, more: str) -> None:
        holder = self._messages[self._holders[call_id]]
        if isinstance(holder, AssistantMessage):
            calls = [extended(call, more) if call.id == call_id else call for call in holder.tool_calls or ()]
            self._messages[holder.id] = holder.model_copy(update={"tool_calls": calls})

    # --- one method per event ---

    def _text_start(self, event: TextMessageStartEvent) -> None:
        kind = ROLES.get(event.role or "assistant", AssistantMessage)
        message = kind(id=event.message_id, content="", name=event.name, subagent_run_id=event.subagent_run_id)
        self._messages.setdefault(event.message_id, message)

    def _text(self, event: TextMessageContentEvent | ReasoningMessageContentEvent) -> None:
        if event.message_id in self._messages:
            self._texts.setdefault(event.message_id, []).append(event.delta)

    def _reasoning_start(self, event: ReasoningMessageStartEvent) -> None:
        message = ReasoningMessage(id=event.message_id, content="", subagent_run_id=event.subagent_run_id)
        self._messages.setdefault(event.message_id, message)

    def _seal(self, event: ReasoningEncryptedValueEvent) -> None:
        message = self._messages.get(event.entity_id)
        if event.subtype == "message" and message is not None:
            self._messages[event.entity_id] = message.model_copy(update={"encrypted_value": event.encrypted_value})

    def _call_start(self, event: ToolCallStartEvent) -> None:
        call = ToolCall(id=event.tool_call_id, function=FunctionCall(name=event.tool_call_name, arguments=""))
        key = event.parent_message_id or event.tool_call_id
        holder = self._messages.get(key)
        if not isinstance(holder, AssistantMessage):
            key = key if holder is None else event.tool_call_id
            holder = AssistantMessage(id=key, subagent_run_id=event.subagent_run_id)
        self._messages[key] = holder.model_copy(update={"tool_calls": [*(holder.tool_calls or ()), call]})
        self._holders[call.id] = key

    def _call_arguments(self, event: ToolCallArgsEvent) -> None:
        if event.tool_call_id in self._holders:
            self._arguments.setdefault(event.tool_call_id, []).append(event.delta)

    def _call_result(self, event: ToolCallResultEvent) -> None:
        self._messages[event.message_id] = ToolMessage(
            id=event.message_id,
            tool_call_id=event.tool_call_id,
            content=event.content,
            subagent_run_id=event.subagent_run_id,
        )

    def _snapshot(self, event: MessagesSnapshotEvent) -> None:
        """The complete set; reasoning that a snapshot says nothing of stays (spec, events/state)."""
        said = {message.id: message for message in event.messages}
        if not any(isinstance(message, ReasoningMessage) for message in event.messages):
            said = {message.id: message for message in self.messages if isinstance(message, ReasoningMessage)} | said
        kept = {key: said[key] for key in self._messages if key in said}
        self._messages = kept | said
        self._texts.clear()
        self._arguments.clear()
        self._holders = {
            call.id: message.id
            for message in said.values()
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls or ()
        }


def extended(call: ToolCall, more: str) -> ToolCall:
    """The call with more of its arguments."""
    function = call.function.model_copy(update={"arguments": call.function.arguments + more})
    return call.model_copy(update={"function": function})
