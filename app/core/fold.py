"""Events to messages: the conversation that a client has after a run's events.

Rule: pure, and the same result as the official client's, message for message, but for metadata, and for activities,
which never travel back to an agent. Text is joined when it is asked for, so a token costs an append. Source: AG-UI spec
1.1, events/*; ``defaultApplyEvents`` of ``@ag-ui/client`` 1.0.0.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import ClassVar

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

from app.core.order import KINDS, Kind

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
        self._messages: dict[str, Message] = {}
        self._order: list[str] = []
        self._texts: dict[str, list[str]] = {}
        self._holders: dict[str, str] = {}
        self._arguments: dict[str, list[str]] = {}
        self._hold(messages)
        self._before = dict(self._messages)

    def _hold(self, messages: Iterable[Message]) -> None:
        """Begin with these."""
        self._messages = {message.id: message for message in messages}
        self._order = list(self._messages)
        self._texts.clear()
        self._arguments.clear()
        self._holders.clear()
        for message in self._messages.values():
            for call in (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ():
                self._holders.setdefault(call.id, message.id)

    def feed(self, event: BaseEvent) -> None:
        """Take one event; those that say nothing of messages change nothing."""
        self.take(KINDS[type(event)], event)

    def take(self, kind: Kind, event: BaseEvent) -> None:
        """``feed``, for who knows already what the event is."""
        fold = self._FOLDS.get(kind.event)
        if fold is not None:
            fold(self, event)

    @property
    def messages(self) -> list[Message]:
        """The conversation so far, in order."""
        for key, pieces in self._texts.items():
            message = self._messages[key]
            text = "".join([str(getattr(message, "content", None) or ""), *pieces])
            self._messages[key] = message.model_copy(update={"content": text})
        self._texts.clear()
        for call_id, pieces in self._arguments.items():
            self._change_call(call_id, partial(extended, more="".join(pieces)))
        self._arguments.clear()
        return [self._messages[key] for key in self._order]

    @property
    def changed(self) -> list[Message]:
        """Those that were not there at the beginning, or not like this, in order."""
        return [message for message in self.messages if self._before.get(message.id) is not message]

    @property
    def order(self) -> list[str] | None:
        """The ids of all; None where the new ones stand behind those of the beginning."""
        order = [message.id for message in self.messages]
        return None if order == list(dict.fromkeys([*self._before, *order])) else order

    def _change_call(self, call_id: str, change: Callable[[ToolCall], ToolCall]) -> None:
        holder = self._messages.get(self._holders.get(call_id, ""))
        if isinstance(holder, AssistantMessage):
            calls = [change(call) if call.id == call_id else call for call in holder.tool_calls or ()]
            self._messages[holder.id] = holder.model_copy(update={"tool_calls": calls})

    def _append(self, message: Message) -> None:
        """Add a message, unless there is one of this id: what opens again goes on."""
        if message.id not in self._messages:
            self._messages[message.id] = message
            self._order.append(message.id)

    # --- one method per event ---

    def _text_start(self, event: TextMessageStartEvent) -> None:
        kind = ROLES.get(event.role or "assistant", AssistantMessage)
        self._append(kind(id=event.message_id, content="", name=event.name, subagent_run_id=event.subagent_run_id))

    def _text(self, event: TextMessageContentEvent | ReasoningMessageContentEvent) -> None:
        pieces = self._texts.get(event.message_id)
        if pieces is not None:
            pieces.append(event.delta)
        elif event.message_id in self._messages:
            self._texts[event.message_id] = [event.delta]

    def _reasoning_start(self, event: ReasoningMessageStartEvent) -> None:
        self._append(ReasoningMessage(id=event.message_id, content="", subagent_run_id=event.subagent_run_id))

    def _seal(self, event: ReasoningEncryptedValueEvent) -> None:
        sealed = {"encrypted_value": event.encrypted_value}
        message = self._messages.get(event.entity_id)
        if event.subtype == "tool-call":
            self._change_call(event.entity_id, lambda call: call.model_copy(update=sealed))
        elif message is not None:
            self._messages[event.entity_id] = message.model_copy(update=sealed)

    def _call_start(self, event: ToolCallStartEvent) -> None:
        if event.tool_call_id in self._holders:
            return
        call = ToolCall(id=event.tool_call_id, function=FunctionCall(name=event.tool_call_name, arguments=""))
        key = event.parent_message_id or event.tool_call_id
        if not isinstance(self._messages.get(key, None), AssistantMessage):
            key = event.tool_call_id if key in self._messages else key
            self._append(AssistantMessage(id=key, subagent_run_id=event.subagent_run_id))
        holder = self._messages[key]
        if isinstance(holder, AssistantMessage):
            self._messages[key] = holder.model_copy(update={"tool_calls": [*(holder.tool_calls or ()), call]})
            self._holders[call.id] = key

    def _call_arguments(self, event: ToolCallArgsEvent) -> None:
        if event.tool_call_id in self._holders:
            self._arguments.setdefault(event.tool_call_id, []).append(event.delta)

    def _call_result(self, event: ToolCallResultEvent) -> None:
        """Behind its call and the results that are there already."""
        message = ToolMessage(
            id=event.message_id,
            tool_call_id=event.tool_call_id,
            content=event.content,
            subagent_run_id=event.subagent_run_id,
        )
        at = len(self._order)
        if event.tool_call_id in self._holders:
            at = self._order.index(self._holders[event.tool_call_id]) + 1
            while at < len(self._order) and isinstance(self._messages[self._order[at]], ToolMessage):
                at += 1
        if event.message_id not in self._messages:
            self._order.insert(at, event.message_id)
        self._messages[event.message_id] = message

    def _snapshot(self, event: MessagesSnapshotEvent) -> None:
        """The complete set; reasoning that a snapshot says nothing of stays (spec, events/state)."""
        said = {message.id: message for message in event.messages}
        restated = any(isinstance(message, ReasoningMessage) for message in event.messages)
        held = [
            message
            for message in self.messages
            if message.id in said or (isinstance(message, ReasoningMessage) and not restated)
        ]
        self._hold([said.get(message.id, message) for message in held] + list(said.values()))

    _FOLDS: ClassVar[Mapping[type[BaseEvent], Callable[..., None]]] = {
        TextMessageContentEvent: _text,
        ReasoningMessageContentEvent: _text,
        ToolCallArgsEvent: _call_arguments,
        TextMessageStartEvent: _text_start,
        ReasoningMessageStartEvent: _reasoning_start,
        ReasoningEncryptedValueEvent: _seal,
        ToolCallStartEvent: _call_start,
        ToolCallResultEvent: _call_result,
        MessagesSnapshotEvent: _snapshot,
    }
    """What an event does to a conversation; the others do nothing."""


def extended(call: ToolCall, more: str) -> ToolCall:
    """The call with more of its arguments."""
    function = call.function.model_copy(update={"arguments": call.function.arguments + more})
    return call.model_copy(update={"function": function})
