"""Transcript: the conversation that a client has after the events of a run.

Rules:

- The messages equal those of the official client. But a snapshot decides the order, so that a thread that is loaded
  again looks as its agent has it.
- Deltas are written to buffers, and ``messages`` joins them, so that a delta costs one write.
- The text of a tool's result is never interpreted, because a successful tool may return any text. A failed tool of the
  server is marked in the ``metadata`` of its result, because TOOL_CALL_RESULT has no field for an error and clients
  store the metadata with the message. A failed tool of the client has ``error``.

Source: AG-UI spec 1.1, events/* and basic/metadata; ``defaultApplyEvents`` of ``@ag-ui/client`` 1.0.0.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivityMessage,
    ActivitySnapshotEvent,
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
    StateDeltaEvent,
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

from agui_core.json_patch import apply_patch, copy_json
from agui_core.turns import calls_of
from agui_core.type_cache import TypeCache

ENCRYPTED_TYPE = "encryptedValueType"
"""Field that belongs to the encrypted value. The classes of ``ag_ui.core`` 1.0 keep it as an unknown one."""

Holder = TypeVar("Holder", Message, ToolCall)


Metadata = dict[str, Any]

MESSAGE_EVENTS = (
    TextMessageStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ToolCallResultEvent,
    ActivitySnapshotEvent,
    ActivityDeltaEvent,
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
    """Conversation built from events. Chunks must be expanded and the order validated."""

    __slots__ = (
        "_arguments",
        "_call_holders",
        "_call_metadata",
        "_groups",
        "_initial",
        "_last_group",
        "_last_text",
        "_messages",
        "_metadata",
        "_texts",
    )

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._set_messages(messages)
        self._initial = self._messages.copy()

    def _set_messages(self, messages: Iterable[Message]) -> None:
        self._last_text: bytearray | None = None
        self._messages = {message.id: message for message in messages}
        self._groups: dict[str | None, list[str]] = {None: []}
        """Ids of the results that follow a message, by its id. The messages are in order."""
        self._last_group: str | None = None
        self._texts: dict[str, bytearray] = {}
        self._call_holders: dict[str, str] = {}
        """Id of the message that has a call, by the id of the call."""
        self._arguments: dict[str, bytearray] = {}
        self._metadata: dict[str, Metadata] = {}
        self._call_metadata: dict[str, Metadata] = {}
        for message in self._messages.values():
            self._place(message)  # a result where it is, because no call is known yet
        for message in self._messages.values():
            for call in calls_of(message):
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
        handle = HANDLERS[type(event)]
        if handle is not None:
            handle(self, event)
        if event.metadata is not None:
            self._merge_metadata(event, event.metadata)

    def add(self, message: Message) -> None:
        """Add a message at the end, a result behind its call, or replace the message with its id."""
        self._append(message)
        self._messages[message.id] = message

    @property
    def messages(self) -> list[Message]:
        for key, buffer in self._texts.items():
            message = self._messages[key]
            text = str(getattr(message, "content", None) or "") + buffer.decode("utf-8", "surrogatepass")
            self._messages[key] = message.model_copy(update={"content": text})
        self._clear(self._texts)
        for key, metadata in self._metadata.items():
            message = self._messages[key]
            self._messages[key] = message.model_copy(update={"metadata": {**(message.metadata or {}), **metadata}})
        self._metadata.clear()
        for key in dict.fromkeys(self._call_holders[call_id] for call_id in (*self._arguments, *self._call_metadata)):
            self._change_calls(key, self._with_buffers)
        self._clear(self._arguments)
        self._call_metadata.clear()
        ids = [key for holder, results in self._groups.items() for key in (holder, *results) if key is not None]
        return [self._messages[key] for key in ids]

    def _clear(self, buffers: dict[str, bytearray]) -> None:
        """Empty buffers whose text is in the messages. The last delta's stays, because ``append`` writes to it."""
        continued = {key: buffer for key, buffer in buffers.items() if buffer is self._last_text}
        buffers.clear()
        for key, buffer in continued.items():
            buffer.clear()
            buffers[key] = buffer

    def changed(self, messages: Iterable[Message]) -> list[Message]:
        return [message for message in messages if self._initial.get(message.id) is not message]

    @property
    def last_id(self) -> str | None:
        return [self._last_group, *self._groups[self._last_group]][-1]

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
            self._place(message)

    def _place(self, message: Message) -> None:
        """Put a message at the end, and a result behind the message with its call and that message's earlier results.

        A result without a call is put at the end.
        """
        if isinstance(message, ToolMessage):
            self._groups[self._call_holders.get(message.tool_call_id, self._last_group)].append(message.id)
        else:
            self._last_group, self._groups[message.id] = message.id, []

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
        message = ToolMessage(
            id=event.message_id,
            tool_call_id=event.tool_call_id,
            content=event.content,
            subagent_run_id=event.subagent_run_id,
        )
        self.add(message)

    def _activity(self, event: ActivitySnapshotEvent) -> None:
        activity = ActivityMessage(
            id=event.message_id,
            activity_type=event.activity_type,
            content=event.content,
            subagent_run_id=event.subagent_run_id,
        )
        known = self._messages.get(event.message_id)
        if known is None:
            self._append(activity)
        elif isinstance(known, ActivityMessage) and event.replace is not False:
            self._messages[event.message_id] = activity.model_copy(update={"metadata": known.metadata})

    def _change_activity(self, event: ActivityDeltaEvent) -> None:
        """Apply a patch. Clients ignore one that does not apply."""
        activity = self._messages.get(event.message_id)
        if isinstance(activity, ActivityMessage):
            with suppress(ValueError):
                content = apply_patch(copy_json(activity.content), StateDeltaEvent(delta=event.patch))
                if isinstance(content, dict):
                    update = {"content": content, "activity_type": event.activity_type}
                    self._messages[event.message_id] = activity.model_copy(update=update)

    def _snapshot(self, event: MessagesSnapshotEvent) -> None:
        """Replace all messages. Reasoning and activities stay if the snapshot has none at all (spec, events/state).

        They stay before the message that they precede, or at the end.
        """
        snapshot = {message.id: message for message in event.messages}
        preceding: dict[str, list[Message]] = {}
        block: list[Message] = []
        sent = {type(message) for message in event.messages}
        lacking = tuple(kind for kind in (ReasoningMessage, ActivityMessage) if kind not in sent)
        for message in self.messages if lacking else ():
            if message.id in snapshot:
                preceding[message.id], block = block, []
            elif isinstance(message, lacking):
                block.append(message)
        ordered = [each for message in snapshot.values() for each in (*preceding.get(message.id, ()), message)]
        self._set_messages([*ordered, *block])

    _HANDLERS: ClassVar[Mapping[type[BaseEvent], Callable[..., None]]] = {
        TextMessageContentEvent: _text,
        ReasoningMessageContentEvent: _text,
        ToolCallArgsEvent: _call_arguments,
        TextMessageStartEvent: _text_start,
        ReasoningMessageStartEvent: _reasoning_start,
        ReasoningEncryptedValueEvent: _set_encrypted_value,
        ToolCallStartEvent: _call_start,
        ToolCallResultEvent: _call_result,
        ActivitySnapshotEvent: _activity,
        ActivityDeltaEvent: _change_activity,
        MessagesSnapshotEvent: _snapshot,
    }
    """Method that applies events of each class. Other events do not change messages."""

    @classmethod
    def handler_of(cls, kind: type) -> Callable[..., None] | None:
        """Return the method that applies events of a class, or of one that extends it."""
        return next((cls._HANDLERS[base] for base in kind.__mro__ if base in cls._HANDLERS), None)


HANDLERS = TypeCache(Transcript.handler_of)


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
    return result.error is not None or (result.metadata or {}).get(FAILED) is True


def is_answered_by_server(result: ToolMessage) -> bool:
    """Return True if the metadata is that of the server's own results, so that no client was asked for this one."""
    return not {FAILED, DENIED, DURATION}.isdisjoint(result.metadata or {})


def with_encrypted_value(holder: Holder, event: ReasoningEncryptedValueEvent) -> Holder:
    """Return a message or call with the event's encrypted value. The type of an earlier value is replaced with it."""
    return _with_value(holder, event.encrypted_value, (event.model_extra or {}).get(ENCRYPTED_TYPE))


def restore_value(sent: Holder, stored: Holder) -> Holder:
    """Return a message or call with the stored encrypted value and its type, unless the client has sent its own."""
    value = _value(stored)
    if value is None or _value(sent) not in {None, value} or ENCRYPTED_TYPE in (sent.model_extra or {}):
        return sent
    return _with_value(sent, value, (stored.model_extra or {}).get(ENCRYPTED_TYPE))


def _value(holder: Message | ToolCall) -> str | None:
    return None if isinstance(holder, ActivityMessage) else holder.encrypted_value


def _with_value(holder: Holder, value: str, kind: object) -> Holder:
    changed = holder.model_copy(update={"encrypted_value": value})
    extra = {name: each for name, each in (holder.model_extra or {}).items() if name != ENCRYPTED_TYPE}
    changed.__pydantic_extra__ = extra if kind is None else {**extra, ENCRYPTED_TYPE: kind}
    return changed
