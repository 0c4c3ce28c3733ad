"""Parts of a stored conversation that a client's copy of it can neither replace nor lose.

Rules:

- The result of a server tool stays as the run has stored it. The result of a client tool is the client's: the last one
  counts.
- Reasoning and encrypted values stay with their message. Clients commonly drop both, and a model that has thought
  before a call refuses the call without them.
- Activities stay behind their message. Clients do not send them.
"""

from collections import defaultdict
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
    if not has_member(stored, ENCRYPTED):
        return sent
    sent_ids = {message.id for message in sent}
    holders: dict[str, Message] = {}
    for key, data in stored.items():
        if ENCRYPTED in data and (key in sent_ids or TOOL_CALLS in data):
            holders[key] = MESSAGE.validate_json(data)
    calls = {(call.id, call.function.name): call for each in holders.values() for call in calls_of(each)}
    return [_with_encrypted_values(message, holders.get(message.id), calls) for message in sent]


def has_member(stored: Mapping[str, bytes], *members: bytes) -> bool:
    """Search all messages at once, which takes a tenth of the time of one search in each."""
    together = b"".join(stored.values())
    return any(member in together for member in members)


def _with_encrypted_values(
    message: Message, stored: Message | None, stored_calls: Mapping[tuple[str, str], ToolCall]
) -> Message:
    if stored is not None and message.role == stored.role and message.content == stored.content:
        message = restore_value(message, stored)
    sent = list(calls_of(message))
    calls = [restore_value(call, stored_calls.get((call.id, call.function.name), call)) for call in sent]
    return message if calls == sent else message.model_copy(update={"tool_calls": calls})


def with_companions(stored: Mapping[str, bytes], sent: Sequence[Message]) -> Sequence[Message]:
    """Put the reasoning and the activities that the client does not send beside their messages.

    Reasoning precedes the assistant's message with the same id or call, unless that comes with reasoning. Activities
    follow the same message, or the answer or result under a new id that is in its place. Those of a turn or an answer
    that is not sent are left out.
    """
    if not has_member(stored, b'"reasoning"', b'"activity"'):
        return sent
    at = {message.id: index for index, message in enumerate(sent)}
    calls = {call.id: index for index in reversed(range(len(sent))) for call in calls_of(sent[index])}
    new_roles = [None if message.id in stored else message.role for message in sent]
    before, behind = defaultdict[int, list[Message]](list), defaultdict[int, list[Message]](list)
    block: list[Message] = []
    place: int | None = -1
    for message in map(MESSAGE.validate_json, stored.values()):
        if isinstance(message, AssistantMessage) and block:
            same = (
                [at[message.id]] if message.id in at else [calls[it.id] for it in calls_of(message) if it.id in calls]
            )
            if same and not (same[0] and is_reasoning(sent[same[0] - 1])):
                before[same[0]] += block
        block = [*block, message] if is_reasoning(message) and message.id not in at else []
        if message.id in at:
            place = at[message.id]
        elif isinstance(message, ActivityMessage):
            if place is not None:
                behind[place].append(message)
        elif place is not None and message.role != "user" and new_roles[place + 1 : place + 2] == [message.role]:
            place += 1
        elif message.role in {"user", "assistant"} and message.subagent_run_id is None:
            place = None
    return [*behind[-1], *(each for i, it in enumerate(sent) for each in (*before[i], it, *behind[i]))]


def is_reasoning(message: Message) -> bool:
    return isinstance(message, ReasoningMessage) and message.subagent_run_id is None
