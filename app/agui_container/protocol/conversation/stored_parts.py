"""Parts of a stored conversation that a client's copy of it can neither replace nor lose.

Rules:

- The result of a server tool stays as the run has stored it. The result of a client tool is the client's: the last one
  counts.
- Reasoning and encrypted values stay with their message. Clients commonly drop both, and a model that has thought
  before a call refuses the call without them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ag_ui.core import AssistantMessage, Message, ReasoningMessage, ToolCall, ToolMessage
from msgspec import Struct

from agui_container.protocol.conversation.encrypted_values import restore_value
from agui_container.protocol.conversation.transcript import DENIED, DURATION
from agui_container.protocol.parser import MESSAGE

NO_RESULT = "This call was not answered."
"""Text of the placeholder for a missing result. A result that comes later replaces it."""


ENCRYPTED, TOOL_CALLS = b'"encryptedValue"', b'"toolCalls"'
"""Members in the JSON of stored messages, by which messages are chosen before they are parsed."""


class ResultAuthors(Struct, frozen=True):
    """Facts that tell results of server tools from those of client tools.

    Attributes:
        run_messages: ids of the stored messages that runs have added.
        client_tools: names of the tools that the client offers.
    """

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
        return is_added_by_run and result.content != NO_RESULT


NO_AUTHORS = ResultAuthors()
"""Facts about a thread without runs."""

ResultKey = tuple[str | None, str]
"""The id of the message that makes a call, and the id of the call. Calls of two messages may have the same id."""


def server_results(stored: Iterable[Message], authors: ResultAuthors) -> Mapping[ResultKey, ToolMessage]:
    """Return the stored results of server tools. A result belongs to the last call with its id before it."""
    calls: dict[str, tuple[str, ToolCall]] = {}
    results: dict[ResultKey, ToolMessage] = {}
    for message in stored:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, (message.id, call)) for call in message.tool_calls or ())
        elif isinstance(message, ToolMessage) and message.tool_call_id in calls:
            holder, call = calls[message.tool_call_id]
            if authors.is_servers(message, call):
                results[holder, call.id] = message
    return results


def with_server_results(
    stored: Mapping[str, bytes], sent: Sequence[Message], authors: ResultAuthors, *, is_whole: bool
) -> Sequence[Message]:
    """Return the sent messages with the stored results of server tools in place of others for the same calls.

    Args:
        stored: JSON of the stored messages by id, in order.
        sent: messages of the client's request.
        authors: tells whose the stored results are.
        is_whole: True if the sent messages are the whole conversation. If they are not, they follow the stored ones.

    Raises:
        ValueError: stored JSON is not a message.
    """
    results = [message for message in sent if isinstance(message, ToolMessage)]
    if not stored or all(is_stored(message, stored) for message in results):
        return sent
    messages = [MESSAGE.validate_json(data) for data in stored.values()]
    final = server_results(messages, authors)
    return list(_replace_results(sent, final, holders_of(() if is_whole else messages))) if final else sent


def is_stored(message: Message, stored: Mapping[str, bytes]) -> bool:
    """Return True if a message is stored without a difference. Raises ``ValueError`` if stored JSON is no message."""
    data = stored.get(message.id)
    return data is not None and MESSAGE.validate_json(data) == message


def _replace_results(
    sent: Iterable[Message], results: Mapping[ResultKey, ToolMessage], holders: dict[str, str]
) -> Iterator[Message]:
    used: set[str] = set()
    for message in sent:
        if isinstance(message, AssistantMessage):
            holders.update(holders_of([message]))
        result = None
        if isinstance(message, ToolMessage):
            result = results.get((holders.get(message.tool_call_id), message.tool_call_id))
        if result is None:
            yield message
        elif result.id not in used:
            used.add(result.id)
            yield result


def holders_of(messages: Iterable[Message]) -> dict[str, str]:
    """Return the id of the last message that makes each call, by the id of the call."""
    assistants = (message for message in messages if isinstance(message, AssistantMessage))
    return {call.id: message.id for message in assistants for call in message.tool_calls or ()}


def with_encrypted_values(stored: Mapping[str, bytes], sent: Sequence[Message]) -> Sequence[Message]:
    """Return the sent messages with the stored encrypted values that they lack, if the content is the same.

    Raises:
        ValueError: stored JSON is not a message.
    """
    return [
        _with_encrypted_value(message, MESSAGE.validate_json(data))
        if ENCRYPTED in (data := stored.get(message.id, b""))
        else message
        for message in sent
    ]


def _with_encrypted_value(message: Message, stored: Message) -> Message:
    is_copy = message.role == stored.role and message.content == stored.content
    return restore_value(message, stored) if is_copy else message


def restore_call_values(stored: Mapping[str, bytes], sent: Sequence[Message]) -> Sequence[Message]:
    """Return the sent messages with the opaque values of calls that the thread has and the client did not send.

    Many clients store the fields of a call that they know, and a model may refuse a call without its opaque value.

    Raises:
        ValueError: stored JSON is not a message.
    """
    with_values = [MESSAGE.validate_json(data) for data in stored.values() if ENCRYPTED in data and TOOL_CALLS in data]
    if not with_values:
        return sent
    assistants = [message for message in with_values if isinstance(message, AssistantMessage)]
    values = {(call.id, call.function.name): call for each in assistants for call in each.tool_calls or ()}
    return [
        _with_call_values(message, values) if isinstance(message, AssistantMessage) else message for message in sent
    ]


def _with_call_values(message: AssistantMessage, stored: Mapping[tuple[str, str], ToolCall]) -> AssistantMessage:
    sent = message.tool_calls or []
    calls = [restore_value(call, stored.get((call.id, call.function.name), call)) for call in sent]
    return message if calls == sent else message.model_copy(update={"tool_calls": calls})


def with_reasoning(stored: Mapping[str, bytes], sent: Sequence[Message]) -> Sequence[Message]:
    """Return a whole conversation with the stored reasoning directly before the message that it was stored with.

    That message is the assistant's message with the same id, or with a call of the same id. Messages that come with
    reasoning keep theirs.

    Raises:
        ValueError: stored JSON is not a message.
    """
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
    """Return the stored reasoning that was not sent, by the keys of the message that follows it."""
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
    """Return the keys by which a message of the assistant is recognised: its own id, and the ids of its calls."""
    return ("message", message.id), *(("call", call.id) for call in message.tool_calls or ())


def is_reasoning(message: Message) -> bool:
    """Return True for reasoning of the assistant itself."""
    return isinstance(message, ReasoningMessage) and message.subagent_run_id is None
