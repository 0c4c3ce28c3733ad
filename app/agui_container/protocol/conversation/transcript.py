"""Ids in order, for what grows at its end and seldom elsewhere.

Rule: to put one behind another costs the same however many there are.

Events to messages: the conversation that a client has after a run's events.

Rule: pure, and the same result as the official client's, message for message, but for activities, which never travel
back to an agent. Text and metadata are put together when they are asked for, so a token costs one write to a buffer.
Source: AG-UI spec 1.1, events/* and basic/metadata; ``defaultApplyEvents`` of ``@ag-ui/client`` 1.0.0.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from io import StringIO
from typing import Any, ClassVar

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
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    SystemMessage,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
)

from agui_container.protocol.grammar import KINDS, EventKind


class OrderedIds:
    """A row of ids, each once."""

    __slots__ = ("_last", "_next")

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._next: dict[str | None, str] = {}
        self._last: str | None = None
        for each in ids:
            self.append(each)

    def __iter__(self) -> Iterator[str]:
        ids, following = [], self._next.get(None)
        while following is not None:
            ids.append(following)
            following = self._next.get(following)
        return iter(ids)

    def next_after(self, other: str) -> str | None:
        """The one behind that one; None behind the last."""
        return self._next.get(other)

    def append(self, new: str) -> None:
        """Put a new one behind the last."""
        self._next[self._last] = self._last = new

    def insert(self, new: str, other: str) -> None:
        """Put a new one behind that one."""
        if other == self._last:
            self.append(new)
        else:
            self._next[other], self._next[new] = new, self._next[other]


Metadata = dict[str, Any]

OF_MESSAGES = (
    TextMessageStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ToolCallResultEvent,
)
OF_CALLS = (ToolCallStartEvent, ToolCallArgsEvent, ToolCallEndEvent)
"""Whose metadata is that of a message, and of a call."""

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

    __slots__ = (
        "_arguments",
        "_asides",
        "_before",
        "_calls_asides",
        "_holders",
        "_messages",
        "_order",
        "_results",
        "_texts",
        "last_text",
    )

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.last_text: StringIO | None = None
        """The buffer that the last delta was written to; None if its message or call is not kept."""
        self._set_messages(messages)
        self._before = tuple(self._messages.values())

    def _set_messages(self, messages: Iterable[Message]) -> None:
        """Begin with these."""
        self._messages = {message.id: message for message in messages}
        self._order = OrderedIds(self._messages)
        self._results: dict[str, str] = {}
        self._texts: dict[str, StringIO] = {}
        self._holders: dict[str, str] = {}
        self._arguments: dict[str, StringIO] = {}
        self._asides: dict[str, Metadata] = {}
        self._calls_asides: dict[str, Metadata] = {}
        for message in self._messages.values():
            for call in (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ():
                self._holders.setdefault(call.id, message.id)

    def feed(self, event: BaseEvent) -> None:
        """Take one event; those that say nothing of messages change nothing."""
        self.feed_kind(KINDS[type(event)], event)

    def feed_kind(self, kind: EventKind, event: BaseEvent) -> None:
        """``feed``, for who knows already what the event is."""
        fold = self._FOLDS.get(kind.event)
        if fold is not None:
            fold(self, event)
        if event.metadata is not None:
            self._merge_metadata(event, event.metadata)

    @property
    def messages(self) -> list[Message]:
        """The conversation so far, in order."""
        for key, more in self._texts.items():
            message = self._messages[key]
            text = str(getattr(message, "content", None) or "") + more.getvalue()
            self._messages[key] = message.model_copy(update={"content": text})
        self._texts.clear()
        for key, aside in self._asides.items():
            message = self._messages[key]
            self._messages[key] = message.model_copy(update={"metadata": {**(message.metadata or {}), **aside}})
        self._asides.clear()
        for key in dict.fromkeys(self._holders[call_id] for call_id in (*self._arguments, *self._calls_asides)):
            self._change_calls(key, self._finish_call)
        self._arguments.clear()
        self._calls_asides.clear()
        return [self._messages[key] for key in self._order]

    def changed(self, messages: Iterable[Message]) -> list[Message]:
        """Those of ``messages`` that were not there at the beginning, or not like this, in order."""
        before = {message.id: message for message in self._before}
        return [message for message in messages if before.get(message.id) is not message]

    @property
    def order(self) -> list[str] | None:
        """The ids of all; None where the new ones stand behind those of the beginning."""
        order = list(self._order)
        return None if order == list(dict.fromkeys([*(message.id for message in self._before), *order])) else order

    def _change_calls(self, key: str, change: Callable[[ToolCall], ToolCall]) -> None:
        """Change the calls that this message holds: of a call that several messages have, the first holds it."""
        holder = self._messages[key]
        if isinstance(holder, AssistantMessage):
            calls = [change(call) if self._holders[call.id] == key else call for call in holder.tool_calls or ()]
            self._messages[key] = holder.model_copy(update={"tool_calls": calls})

    def _finish_call(self, call: ToolCall) -> ToolCall:
        """The call with what has come of its arguments and metadata."""
        more, aside, new = self._arguments.get(call.id), self._calls_asides.get(call.id), dict[str, object]()
        if more is not None:
            arguments = call.function.arguments + more.getvalue()
            new["function"] = call.function.model_copy(update={"arguments": arguments})
        if aside is not None:
            new["metadata"] = {**(call.metadata or {}), **aside}
        return call.model_copy(update=new) if new else call

    def _merge_metadata(self, event: BaseEvent, metadata: Metadata) -> None:
        """What is said beside an event is said of what it builds, key by key; what is said last counts."""
        if isinstance(event, OF_CALLS):
            if event.tool_call_id in self._holders:
                self._calls_asides[event.tool_call_id] = self._calls_asides.get(event.tool_call_id, {}) | metadata
        elif isinstance(event, OF_MESSAGES) and event.message_id in self._messages:
            self._asides[event.message_id] = self._asides.get(event.message_id, {}) | metadata

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
        self._append_delta(self._texts if event.message_id in self._messages else None, event.message_id, event.delta)

    def _append_delta(self, texts: dict[str, StringIO] | None, key: str, delta: str) -> None:
        self.last_text = None if texts is None else texts.setdefault(key, StringIO())
        if self.last_text is not None:
            self.last_text.write(delta)

    def _reasoning_start(self, event: ReasoningMessageStartEvent) -> None:
        self._append(ReasoningMessage(id=event.message_id, content="", subagent_run_id=event.subagent_run_id))

    def _set_encrypted_value(self, event: ReasoningEncryptedValueEvent) -> None:
        sealed = {"encrypted_value": event.encrypted_value}
        message = self._messages.get(event.entity_id)
        if event.subtype == "tool-call":
            if event.entity_id in self._holders:
                self._change_calls(
                    self._holders[event.entity_id],
                    lambda call: call.model_copy(update=sealed) if call.id == event.entity_id else call,
                )
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
        self._append_delta(
            self._arguments if event.tool_call_id in self._holders else None, event.tool_call_id, event.delta
        )

    def _call_result(self, event: ToolCallResultEvent) -> None:
        """Behind its call and the results that are there already."""
        message = ToolMessage(
            id=event.message_id,
            tool_call_id=event.tool_call_id,
            content=event.content,
            subagent_run_id=event.subagent_run_id,
        )
        if event.message_id not in self._messages:
            holder = self._holders.get(event.tool_call_id)
            if holder is None:
                self._order.append(event.message_id)
            else:
                self._order.insert(event.message_id, self._last_result(holder))
        self._messages[event.message_id] = message

    def _last_result(self, holder: str) -> str:
        """The last of the results that stand behind a message; the message where there is none.

        Once there is a result behind another it stays there, so the next look begins where the last one ended.
        """
        last = self._results.get(holder, holder)
        while (following := self._order.next_after(last)) is not None:
            if not isinstance(self._messages[following], ToolMessage):
                break
            last = following
        self._results[holder] = last
        return last

    def _snapshot(self, event: MessagesSnapshotEvent) -> None:
        """The complete set; reasoning that a snapshot says nothing of stays (spec, events/state)."""
        said = {message.id: message for message in event.messages}
        restated = any(isinstance(message, ReasoningMessage) for message in event.messages)
        held = [
            message
            for message in self.messages
            if message.id in said or (isinstance(message, ReasoningMessage) and not restated)
        ]
        self._set_messages([said.get(message.id, message) for message in held] + list(said.values()))

    _FOLDS: ClassVar[Mapping[type[BaseEvent], Callable[..., None]]] = {
        TextMessageContentEvent: _text,
        ReasoningMessageContentEvent: _text,
        ToolCallArgsEvent: _call_arguments,
        TextMessageStartEvent: _text_start,
        ReasoningMessageStartEvent: _reasoning_start,
        ReasoningEncryptedValueEvent: _set_encrypted_value,
        ToolCallStartEvent: _call_start,
        ToolCallResultEvent: _call_result,
        MessagesSnapshotEvent: _snapshot,
    }
    """What an event does to a conversation; the others do nothing."""
