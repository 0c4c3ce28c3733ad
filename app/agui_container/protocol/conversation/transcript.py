"""Transcript: the conversation that a client has after the events of a run.

Rules:

- The messages equal those of the official client, except that activities are omitted, because clients never send them
  to an agent. Deltas are written to buffers, and ``messages`` joins them, so that a delta costs one write.
- The text of a tool's result is never interpreted, because a successful tool may return any text. A failed tool of the
  server is marked in the ``metadata`` of its result, because TOOL_CALL_RESULT has no field for an error and clients
  store the metadata with the message. A failed tool of the client has ``error``.

Source: AG-UI spec 1.1, events/* and basic/metadata; ``defaultApplyEvents`` of ``@ag-ui/client`` 1.0.0.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
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

from agui_container.protocol.conversation.encrypted_values import with_encrypted_value
from agui_container.protocol.grammar import KINDS, EventKind


class OrderedIds:
    """Ordered set of ids: a linked list, so that an insertion in the middle takes constant time."""

    __slots__ = ("_next", "last")

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._next: dict[str | None, str] = {}
        self.last: str | None = None
        for each in ids:
            self.append(each)

    def __iter__(self) -> Iterator[str]:
        ids, current = [], self._next.get(None)
        while current is not None:
            ids.append(current)
            current = self._next.get(current)
        return iter(ids)

    def next_after(self, other: str) -> str | None:
        """Return the id after ``other``, or None if that is the last one."""
        return self._next.get(other)

    def append(self, new: str) -> None:
        """Append a new id."""
        self._next[self.last] = self.last = new

    def insert_after(self, other: str, new: str) -> None:
        """Insert a new id after ``other``."""
        if other == self.last:
            self.append(new)
        else:
            self._next[other], self._next[new] = new, self._next[other]


Metadata = dict[str, Any]

MESSAGE_EVENTS = (
    TextMessageStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ToolCallResultEvent,
)
"""Events whose metadata is merged into a message."""

CALL_EVENTS = (ToolCallStartEvent, ToolCallArgsEvent, ToolCallEndEvent)
"""Events whose metadata is merged into a tool call."""

ROLES: Mapping[str, type[AssistantMessage | UserMessage | SystemMessage | DeveloperMessage]] = {
    "assistant": AssistantMessage,
    "user": UserMessage,
    "system": SystemMessage,
    "developer": DeveloperMessage,
}


class Transcript:
    """Conversation built from events. Chunks must be expanded and the order validated.

    Args:
        messages: messages before the run.
    """

    __slots__ = (
        "_arguments",
        "_call_holders",
        "_call_metadata",
        "_initial",
        "_last_results",
        "_last_text",
        "_messages",
        "_metadata",
        "_order",
        "_texts",
    )

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._last_text: bytearray | None = None
        self._set_messages(messages)
        self._initial = self._messages.copy()

    def _set_messages(self, messages: Iterable[Message]) -> None:
        """Replace all messages and clear the buffers."""
        self._messages = {message.id: message for message in messages}
        self._order = OrderedIds(self._messages)
        self._last_results: dict[str, str] = {}
        self._texts: dict[str, bytearray] = {}
        self._call_holders: dict[str, str] = {}
        """Id of the message that has a call, by the id of the call."""
        self._arguments: dict[str, bytearray] = {}
        self._metadata: dict[str, Metadata] = {}
        self._call_metadata: dict[str, Metadata] = {}
        for message in self._messages.values():
            for call in (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ():
                self._call_holders.setdefault(call.id, message.id)

    @property
    def knows_last_delta(self) -> bool:
        """True if the last delta belonged to a message or call of the transcript, so that ``append`` continues it."""
        return self._last_text is not None

    def append(self, text: str) -> None:
        """Append text to the message, or to the arguments of the call, that the last delta belonged to.

        Raises:
            UnicodeEncodeError: the text has half of a surrogate pair. Nothing is appended.
        """
        if self._last_text is not None:
            self._last_text += text.encode()

    def feed(self, event: BaseEvent) -> None:
        """Apply an event. Events that do not change messages are ignored."""
        self.feed_kind(KINDS[type(event)], event)

    def feed_kind(self, kind: EventKind, event: BaseEvent) -> None:
        """Apply an event whose kind the caller has already looked up; otherwise the same as ``feed``."""
        handle = self._HANDLERS.get(kind.event)
        if handle is not None:
            handle(self, event)
        if event.metadata is not None:
            self._merge_metadata(event, event.metadata)

    @property
    def messages(self) -> list[Message]:
        """Messages so far, in order."""
        for key, buffer in self._texts.items():
            message = self._messages[key]
            text = str(getattr(message, "content", None) or "") + buffer.decode("utf-8", "surrogatepass")
            self._messages[key] = message.model_copy(update={"content": text})
        self._texts.clear()
        for key, metadata in self._metadata.items():
            message = self._messages[key]
            self._messages[key] = message.model_copy(update={"metadata": {**(message.metadata or {}), **metadata}})
        self._metadata.clear()
        for key in dict.fromkeys(self._call_holders[call_id] for call_id in (*self._arguments, *self._call_metadata)):
            self._change_calls(key, self._with_buffers)
        self._arguments.clear()
        self._call_metadata.clear()
        return [self._messages[key] for key in self._order]

    def changed(self, messages: Iterable[Message]) -> list[Message]:
        """Return the given messages that the run has added or changed, in order."""
        return [message for message in messages if self._initial.get(message.id) is not message]

    @property
    def last_id(self) -> str | None:
        """Id of the last message, or None if there is none."""
        return self._order.last

    def order(self, messages: Iterable[Message]) -> list[str] | None:
        """Return the ids of all messages, or None if appending the new ones to the initial ones gives their order."""
        order = [message.id for message in messages]
        return None if order == list(dict.fromkeys([*self._initial, *order])) else order

    def _change_calls(self, key: str, change: Callable[[ToolCall], ToolCall]) -> None:
        """Change the calls of a message. If several messages have the same call, only the first one is changed."""
        holder = self._messages[key]
        if isinstance(holder, AssistantMessage):
            calls = [change(call) if self._call_holders[call.id] == key else call for call in holder.tool_calls or ()]
            self._messages[key] = holder.model_copy(update={"tool_calls": calls})

    def _with_buffers(self, call: ToolCall) -> ToolCall:
        """Return the call with its buffered arguments and metadata."""
        buffer, metadata, update = self._arguments.get(call.id), self._call_metadata.get(call.id), dict[str, object]()
        if buffer is not None:
            arguments = call.function.arguments + buffer.decode("utf-8", "surrogatepass")
            update["function"] = call.function.model_copy(update={"arguments": arguments})
        if metadata is not None:
            update["metadata"] = {**(call.metadata or {}), **metadata}
        return call.model_copy(update=update) if update else call

    def _merge_metadata(self, event: BaseEvent, metadata: Metadata) -> None:
        """Merge an event's metadata into its message or call, key by key. The last value of a key wins."""
        if isinstance(event, CALL_EVENTS):
            if event.tool_call_id in self._call_holders:
                self._call_metadata[event.tool_call_id] = self._call_metadata.get(event.tool_call_id, {}) | metadata
        elif isinstance(event, MESSAGE_EVENTS) and event.message_id in self._messages:
            self._metadata[event.message_id] = self._metadata.get(event.message_id, {}) | metadata

    def _append(self, message: Message) -> None:
        """Append a message, unless its id exists: a second START event continues the existing message."""
        if message.id not in self._messages:
            self._messages[message.id] = message
            self._order.append(message.id)

    # --- one method per event ---

    def _text_start(self, event: TextMessageStartEvent) -> None:
        kind = ROLES.get(event.role or "assistant", AssistantMessage)
        self._append(kind(id=event.message_id, content="", name=event.name, subagent_run_id=event.subagent_run_id))

    def _text(self, event: TextMessageContentEvent | ReasoningMessageContentEvent) -> None:
        self._append_delta(self._texts if event.message_id in self._messages else None, event.message_id, event.delta)

    def _append_delta(self, texts: dict[str, bytearray] | None, key: str, delta: str) -> None:
        self._last_text = None if texts is None else texts.setdefault(key, bytearray())
        if self._last_text is not None:
            self._last_text += delta.encode("utf-8", "surrogatepass")

    def _reasoning_start(self, event: ReasoningMessageStartEvent) -> None:
        self._append(ReasoningMessage(id=event.message_id, content="", subagent_run_id=event.subagent_run_id))

    def _set_encrypted_value(self, event: ReasoningEncryptedValueEvent) -> None:
        message = self._messages.get(event.entity_id)
        if event.subtype == "tool-call":
            if event.entity_id in self._call_holders:
                self._change_calls(
                    self._call_holders[event.entity_id],
                    lambda call: with_encrypted_value(call, event) if call.id == event.entity_id else call,
                )
        elif message is not None:
            self._messages[event.entity_id] = with_encrypted_value(message, event)

    def _call_start(self, event: ToolCallStartEvent) -> None:
        if event.tool_call_id in self._call_holders:
            return
        call = ToolCall(id=event.tool_call_id, function=FunctionCall(name=event.tool_call_name, arguments=""))
        key = event.parent_message_id or event.tool_call_id
        if not isinstance(self._messages.get(key, None), AssistantMessage):
            key = event.tool_call_id if key in self._messages else key
            self._append(AssistantMessage(id=key, subagent_run_id=event.subagent_run_id))
        holder = self._messages[key]
        if isinstance(holder, AssistantMessage):
            self._messages[key] = holder.model_copy(update={"tool_calls": [*(holder.tool_calls or ()), call]})
            self._call_holders[call.id] = key

    def _call_arguments(self, event: ToolCallArgsEvent) -> None:
        self._append_delta(
            self._arguments if event.tool_call_id in self._call_holders else None, event.tool_call_id, event.delta
        )

    def _call_result(self, event: ToolCallResultEvent) -> None:
        """Insert a result after the message with its call and that message's earlier results."""
        message = ToolMessage(
            id=event.message_id,
            tool_call_id=event.tool_call_id,
            content=event.content,
            subagent_run_id=event.subagent_run_id,
        )
        if event.message_id not in self._messages:
            holder = self._call_holders.get(event.tool_call_id)
            if holder is None:
                self._order.append(event.message_id)
            else:
                self._order.insert_after(self._last_result(holder), event.message_id)
        self._messages[event.message_id] = message

    def _last_result(self, holder: str) -> str:
        """Return the id of the last result directly after a message, or of the message if there is none.

        Results are never removed, so the search continues from the last position found.
        """
        last = self._last_results.get(holder, holder)
        while (following := self._order.next_after(last)) is not None:
            if not isinstance(self._messages[following], ToolMessage):
                break
            last = following
        self._last_results[holder] = last
        return last

    def _snapshot(self, event: MessagesSnapshotEvent) -> None:
        """Replace all messages. Reasoning stays if the snapshot has no reasoning at all (spec, events/state)."""
        snapshot = {message.id: message for message in event.messages}
        has_reasoning = any(isinstance(message, ReasoningMessage) for message in event.messages)
        remaining = [
            message
            for message in self.messages
            if message.id in snapshot or (isinstance(message, ReasoningMessage) and not has_reasoning)
        ]
        self._set_messages([snapshot.get(message.id, message) for message in remaining] + list(snapshot.values()))

    _HANDLERS: ClassVar[Mapping[type[BaseEvent], Callable[..., None]]] = {
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
    """Method that applies events of each class. Other events do not change messages."""


FAILED = "failed"
"""Metadata key of a failed result. Its value is true. Successful results do not have it."""

DENIED = "denied"
"""Metadata key of the result of a call that a person has denied or cancelled. Its value is true."""

DECISION = "decision"
"""Key in the metadata of a tool result: the answer of a person who approved, edited or denied the call."""

DURATION = "durationMs"
"""Metadata key of the run time of a server tool, in whole milliseconds."""

STOP_REASON = "stopReason"
"""Metadata key of a message that the model has not completed."""


def has_failed(result: ToolMessage) -> bool:
    """Return True if the tool failed or did not run."""
    return result.error is not None or (result.metadata or {}).get(FAILED) is True


def repeats_error(result: ToolMessage, text: str) -> bool:
    """Return True if the text of a failed result begins with its error, so that a model need not read it twice."""
    return text.removeprefix("Error:").lstrip().startswith((result.error or "").strip())


def is_answered_by_server(result: ToolMessage) -> bool:
    """Return True if the metadata is that of the server's own results, so that no client was asked for this one."""
    return not {FAILED, DENIED, DURATION}.isdisjoint(result.metadata or {})
