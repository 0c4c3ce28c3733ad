"""Parts of a stored conversation that a client's copy of it can neither replace nor lose.

Rules:

- The result of a server tool stays as the run has stored it. The result of a client tool is the client's: the last one
  counts.
- Reasoning and encrypted values stay with their message. Clients commonly drop both, and a model that has thought
  before a call refuses the call without them.
- Activities stay behind their message. Clients do not send them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ag_ui.core import (
    ActivityMessage,
    AssistantMessage,
    Message,
    ReasoningMessage,
    ToolCall,
    ToolCallResultEvent,
    ToolMessage,
)
from msgspec import Struct

from agui_container.protocol.parser import MESSAGE
from agui_core.transcript import DENIED, DURATION, FAILED, restore_value
from agui_core.turns import IndexedCall, calls_of, index_calls, is_placeholder

CUT_OFF = "Error: the call was started and cut off; whether it took effect is not known."
"""Result of a call whose run ended while the call was running."""


def cut_off_event(call_id: str) -> ToolCallResultEvent:
    """Return the result of a call whose run ended while the call was running."""
    return ToolCallResultEvent(
        message_id=f"result-{call_id}", tool_call_id=call_id, content=CUT_OFF, role="tool", metadata={FAILED: True}
    )


ENCRYPTED, TOOL_CALLS = b'"encryptedValue"', b'"toolCalls"'
"""Members in the JSON of stored messages, by which messages are chosen before they are parsed."""


class ResultAuthors(Struct, frozen=True):
    """Facts that tell results of server tools, which are among ``run_messages``, from those of client tools."""

    run_messages: Collection[str] = ()
    client_tools: Collection[str] = ()

    def is_servers(self, result: ToolMessage, call: ToolCall) -> bool:
        """Return True if a stored result is that of a server tool. A placeholder of a missing result is not.

        A result with the metadata of the assistant's tools is one in any case: forks and threads that were read from
        AgentCore Memory do not have the runs of their messages.
        """
        if not {DURATION, DENIED}.isdisjoint(result.metadata or ()):
            return True
        is_added_by_run = result.id in self.run_messages and call.function.name not in self.client_tools
        return is_added_by_run and not is_placeholder(result)


NO_AUTHORS = ResultAuthors()
"""Facts about a thread without runs."""

ResultKey = tuple[str | None, str]
"""The id of the message that makes a call, and the id of the call. Calls of two messages may have the same id."""


def server_results(stored: Iterable[Message], authors: ResultAuthors) -> Mapping[ResultKey, ToolMessage]:
    return {
        (each.message.id, each.call.id): result
        for calls in index_calls(stored)
        for each in calls
        for result in each.results
        if authors.is_servers(result, each.call)
    }


def with_server_results(
    stored: Mapping[str, bytes], sent: Sequence[Message], authors: ResultAuthors, *, is_whole: bool
) -> Sequence[Message]:
    """Replace sent results by those of server tools. Without ``is_whole`` the sent messages follow the stored ones."""
    results = [message for message in sent if isinstance(message, ToolMessage)]
    if not stored or all(is_stored(message, stored) for message in results):
        return sent
    messages = [MESSAGE.validate_json(data) for data in stored.values()]
    final = server_results(messages, authors)
    before = [] if is_whole else messages
    return list(_replace_results(sent, index_calls([*before, *sent])[len(before) :], final)) if final else sent


def is_stored(message: Message, stored: Mapping[str, bytes]) -> bool:
    data = stored.get(message.id)
    return data is not None and MESSAGE.validate_json(data) == message


def _replace_results(
    sent: Sequence[Message], index: Sequence[Sequence[IndexedCall]], final: Mapping[ResultKey, ToolMessage]
) -> Iterator[Message]:
    used: set[str] = set()
    for message, calls in zip(sent, index, strict=True):
        answered = calls[0] if calls and isinstance(message, ToolMessage) else None
        result = None if answered is None else final.get((answered.message.id, answered.call.id))
        if result is None:
            yield message
        elif result.id not in used:
            used.add(result.id)
            yield result


def with_encrypted_values(stored: Mapping[str, bytes], sent: Sequence[Message]) -> Sequence[Message]:
    """Return the sent messages with the stored encrypted values that they and their calls lack.

    Many clients keep only the fields that they know. A message gets its value back if the content is the same, and a
    call under any message id.
    """
    sent_ids = {message.id for message in sent}
    holders: dict[str, Message] = {}
    for key, data in stored.items():
        if ENCRYPTED in data and (key in sent_ids or TOOL_CALLS in data):
            holders[key] = MESSAGE.validate_json(data)
    if not holders:
        return sent
    calls = {(call.id, call.function.name): call for each in holders.values() for call in calls_of(each)}
    return [_with_encrypted_values(message, holders.get(message.id), calls) for message in sent]


def _with_encrypted_values(
    message: Message, stored: Message | None, stored_calls: Mapping[tuple[str, str], ToolCall]
) -> Message:
    if stored is not None and message.role == stored.role and message.content == stored.content:
        message = restore_value(message, stored)
    sent = list(calls_of(message))
    calls = [restore_value(call, stored_calls.get((call.id, call.function.name), call)) for call in sent]
    return message if calls == sent else message.model_copy(update={"tool_calls": calls})


def with_reasoning(stored: Mapping[str, bytes], sent: Sequence[Message]) -> Sequence[Message]:
    """Put reasoning before the assistant's message with the same id or call, unless that comes with reasoning."""
    blocks = _reasoning_blocks(stored, {message.id for message in sent})
    if not blocks:
        return sent
    conversation: dict[str, Message] = {}
    last: Message | None = None
    for message in sent:
        if isinstance(message, AssistantMessage) and (last is None or not is_reasoning(last)):
            block = next((blocks[key] for key in anchors_of(message) if key in blocks), ())
            conversation |= {each.id: each for each in block if each.id not in conversation}
        conversation[message.id] = last = message
    return list(conversation.values())


def _reasoning_blocks(stored: Mapping[str, bytes], sent_ids: Collection[str]) -> dict[tuple[str, str], list[Message]]:
    blocks: dict[tuple[str, str], list[Message]] = {}
    open_block: list[Message] = []
    for data in stored.values():
        message = MESSAGE.validate_json(data) if open_block or b'"reasoning"' in data else None
        if message is not None and is_reasoning(message):
            open_block.append(message)
            continue
        missing = [each for each in open_block if each.id not in sent_ids]
        open_block = []
        if missing and isinstance(message, AssistantMessage):
            blocks |= dict.fromkeys(anchors_of(message), missing)
    return blocks


def anchors_of(message: AssistantMessage) -> Sequence[tuple[str, str]]:
    return ("message", message.id), *(("call", call.id) for call in calls_of(message))


def with_activities(stored: Mapping[str, bytes], sent: Sequence[Message]) -> Sequence[Message]:
    """Put the activities that the client does not send behind the message that they follow.

    An answer or a result under a new id is the next sent one. Activities of a turn or an answer that is not sent are
    left out.
    """
    if not any(b'"activity"' in data for data in stored.values()):
        return sent
    at = {message.id: index for index, message in enumerate(sent)}
    new_roles = [None if message.id in stored else message.role for message in sent]
    behind: dict[int, list[Message]] = {}
    place: int | None = -1
    for message in map(MESSAGE.validate_json, stored.values()):
        if isinstance(message, ActivityMessage):
            if place is not None and message.id not in at:
                behind.setdefault(place, []).append(message)
        elif message.id in at:
            place = at[message.id]
        elif place is not None and message.role != "user" and new_roles[place + 1 : place + 2] == [message.role]:
            place += 1
        elif message.role in {"user", "assistant"} and message.subagent_run_id is None:
            place = None
    return [*behind.get(-1, ()), *(each for i, it in enumerate(sent) for each in (it, *behind.get(i, ())))]


def is_reasoning(message: Message) -> bool:
    return isinstance(message, ReasoningMessage) and message.subagent_run_id is None
