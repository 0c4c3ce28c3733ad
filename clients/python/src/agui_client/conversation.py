"""A conversation, made of the events of its runs: messages, state, activities and token usage.

Rule: an event that does not fit changes nothing, and the log says so. The server checks the order of events; a client
shows what it gets.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import singledispatchmethod
from itertools import takewhile
from uuid import uuid4

import jsonpatch
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
    RunErrorEvent,
    RunFinishedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    SystemMessage,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
    UserMessage,
    aggregate_token_usage,
)
from pydantic import BaseModel

logger = logging.getLogger(__name__)

TEXT_KINDS: dict[str, type[AssistantMessage | UserMessage | SystemMessage | DeveloperMessage]] = {
    "assistant": AssistantMessage,
    "user": UserMessage,
    "system": SystemMessage,
    "developer": DeveloperMessage,
}
TEXTS = tuple(TEXT_KINDS.values())
"""Messages that TEXT_MESSAGE events make. A reasoning message may have the id of its answer."""


class Conversation:
    """Messages and state, changed by events.

    Attributes:
        state: the shared state, any JSON value. None if it is not known.
        title: of the thread, where the server gives one.
    """

    def __init__(self, messages: Iterable[Message] = (), state: object = None) -> None:
        self.state = state
        self.title: str | None = None
        self._messages: list[Message] = list(messages)
        self._calls: dict[str, ToolCall] = {}
        self._usage: list[TokenUsage] = []
        self._pieces: dict[tuple[str, str], list[str]] = {}  # of texts and arguments, joined when somebody looks
        self._index_calls()

    @property
    def messages(self) -> list[Message]:
        """All messages, in order, as they are now."""
        self._join_pieces()
        return list(self._messages)

    @property
    def usage(self) -> list[TokenUsage]:
        """Tokens of all runs that were read, one entry for each model."""
        return aggregate_token_usage(self._usage) or []

    @property
    def open_calls(self) -> list[ToolCall]:
        """Calls without a result, since the last message of the user."""
        self._join_pieces()
        calls: dict[str, ToolCall] = {}
        for message in self._messages:
            match message:
                case UserMessage():
                    calls.clear()
                case AssistantMessage(tool_calls=[*made]):
                    calls.update((call.id, call) for call in made)
                case ToolMessage():
                    calls.pop(message.tool_call_id, None)
                case _:
                    pass
        return list(calls.values())

    def call(self, call_id: str) -> ToolCall | None:
        """Return the call with this id, or None if there is none."""
        self._join_pieces()
        return self._calls.get(call_id)

    def add(self, *messages: Message) -> None:
        """Add messages at the end."""
        self._messages.extend(messages)
        self._index_calls()

    def add_result(self, result: ToolMessage) -> None:
        """Add the result of a call behind its call, or replace the message with that id."""
        place = self._place(result.id)
        if place is not None:
            self._messages[place] = result
        else:
            self._messages.insert(self._after_call(result.tool_call_id), result)

    def remove(self, messages: Iterable[Message]) -> None:
        """Remove messages that were added."""
        ids = {message.id for message in messages}
        self.replace([message for message in self._messages if message.id not in ids])

    def replace(self, messages: Sequence[Message]) -> None:
        """Replace all messages."""
        self._join_pieces()
        self._messages = list(messages)
        self._index_calls()

    @singledispatchmethod
    def apply(self, event: BaseEvent) -> None:
        """Change the conversation as the event says. Events that concern nothing of it change nothing."""

    # --- texts --------------------------------------------------------------------------------------------------------

    @apply.register
    def _(self, event: TextMessageStartEvent) -> None:
        if self._find(event.message_id, *TEXTS) is not None:
            return  # a closed message that is opened again
        kind = TEXT_KINDS[event.role or "assistant"]
        lane, facts = event.subagent_run_id, event.metadata
        message = kind(id=event.message_id, content="", name=event.name, subagent_run_id=lane, metadata=facts)
        self._messages.append(message)

    @apply.register
    def _(self, event: TextMessageContentEvent) -> None:
        self._pieces.setdefault(("text", event.message_id), []).append(event.delta)

    @apply.register
    def _(self, event: TextMessageEndEvent) -> None:
        self._join("text", event.message_id)

    @apply.register
    def _(self, event: ReasoningMessageStartEvent) -> None:
        if self._find(event.message_id, ReasoningMessage) is None:
            lane = event.subagent_run_id
            self._messages.append(ReasoningMessage(id=event.message_id, content="", subagent_run_id=lane))

    @apply.register
    def _(self, event: ReasoningMessageContentEvent) -> None:
        self._pieces.setdefault(("reasoning", event.message_id), []).append(event.delta)

    @apply.register
    def _(self, event: ReasoningMessageEndEvent) -> None:
        self._join("reasoning", event.message_id)

    @apply.register
    def _(self, event: ReasoningEncryptedValueEvent) -> None:
        call = self._calls.get(event.entity_id)
        found = call if event.subtype == "tool-call" else self._find(event.entity_id)
        if found is not None:
            found.encrypted_value = event.encrypted_value  # type: ignore[union-attr] # activities have none
        else:
            logger.warning("encrypted value of an unknown entity id=%s", event.entity_id)

    # --- calls --------------------------------------------------------------------------------------------------------

    @apply.register
    def _(self, event: ToolCallStartEvent) -> None:
        message = self._calling_message(event)
        calls = message.tool_calls or []
        if any(call.id == event.tool_call_id for call in calls):
            return  # a closed call that is opened again
        call = ToolCall(id=event.tool_call_id, function=FunctionCall(name=event.tool_call_name, arguments=""))
        self._calls[call.id] = call
        message.tool_calls = [*calls, call]

    def _calling_message(self, event: ToolCallStartEvent) -> AssistantMessage:
        """The message of a call, which is made if there is none. Some servers use the ids of calls again."""
        message_id = event.parent_message_id or event.tool_call_id
        if event.parent_message_id is None and self._has_result(event.tool_call_id):
            message_id = str(uuid4())
        message = self._find(message_id, AssistantMessage)
        if not isinstance(message, AssistantMessage):
            message = AssistantMessage(id=message_id, subagent_run_id=event.subagent_run_id)
            self._messages.append(message)
        return message

    def _has_result(self, call_id: str) -> bool:
        return any(isinstance(each, ToolMessage) and each.tool_call_id == call_id for each in self._messages)

    @apply.register
    def _(self, event: ToolCallArgsEvent) -> None:
        self._pieces.setdefault(("call", event.tool_call_id), []).append(event.delta)

    @apply.register
    def _(self, event: ToolCallEndEvent) -> None:
        self._join("call", event.tool_call_id)

    @apply.register
    def _(self, event: ToolCallResultEvent) -> None:
        result = ToolMessage(
            id=event.message_id,
            content=event.content,
            tool_call_id=event.tool_call_id,
            subagent_run_id=event.subagent_run_id,
            metadata=event.metadata,
        )
        self.add_result(result)

    # --- snapshots, state, activities ---------------------------------------------------------------------------------

    @apply.register
    def _(self, event: MessagesSnapshotEvent) -> None:
        self._join_pieces()
        left_out = (ActivityMessage, ReasoningMessage)
        if any(isinstance(message, left_out) for message in event.messages):
            self.replace(event.messages)
            return
        # A snapshot without activities and reasoning says nothing about them: they stay behind the same message.
        kept: dict[str | None, list[Message]] = {}
        before: str | None = None
        for message in self._messages:
            if isinstance(message, left_out):
                kept.setdefault(before, []).append(message)
            else:
                before = message.id
        messages = kept.pop(None, [])
        for message in event.messages:
            messages += [message, *kept.pop(message.id, [])]
        self.replace(messages)

    @apply.register
    def _(self, event: StateSnapshotEvent) -> None:
        self.state = event.snapshot

    @apply.register
    def _(self, event: StateDeltaEvent) -> None:
        self.state = _patched({} if self.state is None else self.state, event, event.delta)

    @apply.register
    def _(self, event: ActivitySnapshotEvent) -> None:
        activity = ActivityMessage(
            id=event.message_id,
            activity_type=event.activity_type,
            content=event.content,
            subagent_run_id=event.subagent_run_id,
        )
        place = self._place(event.message_id)
        if place is None:
            self._messages.append(activity)
        elif event.replace is not False:
            self._messages[place] = activity

    @apply.register
    def _(self, event: ActivityDeltaEvent) -> None:
        activity = self._find(event.message_id, ActivityMessage)
        if isinstance(activity, ActivityMessage):
            content = _patched(activity.content, event, event.patch)
            activity.content = content if isinstance(content, dict) else activity.content

    @apply.register
    def _(self, event: RunFinishedEvent) -> None:
        self._join_pieces()
        self._usage += event.usage or ()

    @apply.register
    def _(self, event: RunErrorEvent) -> None:
        self._join_pieces()
        self._usage += event.usage or ()

    # --- places -------------------------------------------------------------------------------------------------------

    def _place(self, message_id: str, *kinds: type[BaseModel]) -> int | None:
        """Index of a message. The newest are looked at first, because events concern them."""
        for place in range(len(self._messages) - 1, -1, -1):
            message = self._messages[place]
            if message.id == message_id and (not kinds or isinstance(message, kinds)):
                return place
        return None

    def _find(self, message_id: str, *kinds: type[BaseModel]) -> Message | None:
        place = self._place(message_id, *kinds)
        return None if place is None else self._messages[place]

    def _after_call(self, call_id: str) -> int:
        """Place of a result: behind the message of its call and the results that are there already."""
        for place in range(len(self._messages) - 1, -1, -1):
            message = self._messages[place]
            if isinstance(message, AssistantMessage) and any(each.id == call_id for each in message.tool_calls or ()):
                results = takewhile(lambda each: isinstance(each, ToolMessage), self._messages[place + 1 :])
                return place + 1 + len(list(results))
        return len(self._messages)

    def _index_calls(self) -> None:
        for message in self._messages:
            if isinstance(message, AssistantMessage):
                self._calls.update((call.id, call) for call in message.tool_calls or ())

    def _join_pieces(self) -> None:
        for kind, entity_id in list(self._pieces):
            self._join(kind, entity_id)

    def _join(self, kind: str, entity_id: str) -> None:
        text = "".join(self._pieces.pop((kind, entity_id), ()))
        if not text:
            return
        if kind == "call":
            if (call := self._calls.get(entity_id)) is not None:
                call.function.arguments += text
            return
        message = self._find(entity_id, *((ReasoningMessage,) if kind == "reasoning" else TEXTS))
        if message is not None and not isinstance(message, ActivityMessage):
            message.content = (message.content if isinstance(message.content, str) else "") + text


def _patched(document: object, event: BaseEvent, operations: Sequence[object]) -> object:
    """The patched document, or the document itself if the patch does not apply."""
    patch = event.model_dump(mode="json", by_alias=True)["delta" if isinstance(event, StateDeltaEvent) else "patch"]
    try:
        return jsonpatch.apply_patch(document, patch)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        logger.warning("JSON patch does not apply type=%s operations=%s", event.type.value, len(operations))
        return document
