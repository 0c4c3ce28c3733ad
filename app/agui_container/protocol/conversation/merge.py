"""Merge of a thread's stored messages with the messages that a client sends.

Rule: messages are merged by id, and the sent message replaces the stored one. A client that sends the first stored
message, or the user's first one, sends the whole conversation, so stored messages that are missing are removed. Any
other client sends only new messages. A conversation under new message ids is recognised by its content (``match``).
Messages that were added after the client sent its request are never removed (``append_history``). Results of server
tools, reasoning and encrypted values stay (``stored_parts``). Source: AG-UI spec 1.1, basic/threads; docs/threads.md.
"""

from collections.abc import Container, Mapping, Sequence
from itertools import takewhile

import orjson
from ag_ui.core import AssistantMessage, Message, ToolMessage, UserMessage
from msgspec import Struct
from pydantic import TypeAdapter

from agui_container.protocol.conversation.match import match_conversation
from agui_container.protocol.conversation.stored_parts import (
    NO_AUTHORS,
    ResultAuthors,
    with_encrypted_values,
    with_reasoning,
    with_server_results,
)
from agui_container.protocol.encoder import COPY, PLANS
from agui_container.protocol.strict_json import without_large_integers

MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)

MAX_TITLE = 80
"""Maximum number of characters of a generated title."""


class MergedHistory(Struct, frozen=True):
    """Conversation for the agent, and its changes relative to the stored messages.

    Attributes:
        messages: all messages, in order.
        changed: JSON of new and changed messages by id, in order.
        order: ids of all messages; None if appending the new messages gives the order.
    """

    messages: Sequence[Message]
    changed: Mapping[str, bytes]
    order: Sequence[str] | None


def merge_history(
    stored: Mapping[str, bytes], sent: Sequence[Message], authors: ResultAuthors = NO_AUTHORS
) -> MergedHistory:
    """Merge the sent messages with the stored ones.

    Args:
        stored: JSON of the stored messages by id, in order.
        sent: messages of the client's request.
        authors: tells stored results of server tools, which stay, from those of client tools.

    Raises:
        ValueError: stored JSON is not a message.
    """
    sent = with_encrypted_values(stored, sent)
    if not is_whole(stored, sent):
        conversation = recognise_conversation(stored, sent, authors)
        if conversation is not None:
            return replace_history(stored, conversation)
        return append_history(stored, with_server_results(stored, sent, authors, is_whole=False))
    sent = with_reasoning(stored, with_server_results(stored, sent, authors, is_whole=True))
    encoded = {message.id: dump_message(message) for message in sent}
    changed = {key: data for key, data in encoded.items() if stored.get(key) != data}
    appended_order = list(dict.fromkeys([*(key for key in stored if key in encoded), *encoded]))
    sent_order = list(dict.fromkeys(message.id for message in sent))
    is_appended = len(appended_order) == len({**stored, **encoded}) and appended_order == sent_order
    return MergedHistory(sent, changed, None if is_appended else sent_order)


def is_whole(stored: Mapping[str, bytes], sent: Sequence[Message]) -> bool:
    """Return True if the sent messages contain the first stored one, or the first stored one of the user.

    Clients commonly make a greeting or instructions anew for each request, so the user's first message counts, too.

    Raises:
        ValueError: stored JSON is not a message.
    """
    ids = {message.id for message in sent}
    return not stored or next(iter(stored)) in ids or first_user_message(stored) in ids


def first_user_message(stored: Mapping[str, bytes]) -> str | None:
    """Return the id of the user's first message, or None.

    Raises:
        ValueError: stored JSON is not a message.
    """
    return next((key for key, data in stored.items() if is_users(MESSAGE.validate_json(data))), None)


def is_not_users(message: Message) -> bool:
    """Return True for a message that the user's first message may follow."""
    return not is_users(message)


def is_users(message: Message) -> bool:
    """Return True for a message of the user to the assistant itself."""
    return isinstance(message, UserMessage) and message.subagent_run_id is None


def recognise_conversation(
    stored: Mapping[str, bytes], sent: Sequence[Message], authors: ResultAuthors
) -> list[Message] | None:
    """Return the conversation if the client sent all of it under new ids, with stored messages in place of copies.

    Returns:
        None if a sent id is stored already, or the sent messages are not recognised as the whole conversation.

    Raises:
        ValueError: stored JSON is not a message.
    """
    if not any(isinstance(message, AssistantMessage) for message in sent) or any(each.id in stored for each in sent):
        return None
    return match_conversation([MESSAGE.validate_json(data) for data in stored.values()], sent, authors)


def replace_history(stored: Mapping[str, bytes], conversation: Sequence[Message]) -> MergedHistory:
    """Replace the stored messages by a conversation. Its messages with a stored id equal the stored ones."""
    order = list(dict.fromkeys(message.id for message in conversation))
    new = {message.id: dump_message(message) for message in conversation if message.id not in stored}
    return MergedHistory(conversation, new, None if order == [*stored, *new] else order)


def merge_after_others(
    stored: Mapping[str, bytes], sent: Sequence[Message], final: Container[str], authors: ResultAuthors
) -> MergedHistory:
    """Merge messages that were sent before other runs of the thread ended. No stored message is removed.

    Args:
        stored: JSON of the stored messages by id, in order.
        sent: messages of the client's request.
        final: ids of stored messages that must not change.
        authors: tells stored results of server tools, which stay, from those of client tools.

    Raises:
        ValueError: stored JSON is not a message.
    """
    sent = with_encrypted_values(stored, without_copies(stored, sent, authors))
    return append_history(stored, with_server_results(stored, sent, authors, is_whole=False), final)


def without_copies(
    stored: Mapping[str, bytes], sent: Sequence[Message], authors: ResultAuthors = NO_AUTHORS
) -> Sequence[Message]:
    """Return the sent messages without copies of stored messages under new ids.

    A greeting or instructions before the user's first message count as copies of stored ones of the same role.
    """
    conversation = recognise_conversation(stored, sent, authors)
    if conversation is not None:
        return [message for message in conversation if message.id not in stored]
    if first_user_message(stored) not in {message.id for message in sent}:
        return sent
    roles = {message.role for message in takewhile(is_not_users, map(MESSAGE.validate_json, stored.values()))}
    copies = {each.id for each in takewhile(is_not_users, sent) if each.id not in stored and each.role in roles}
    return [message for message in sent if message.id not in copies]


def append_history(stored: Mapping[str, bytes], sent: Sequence[Message], final: Container[str] = ()) -> MergedHistory:
    """Merge sent messages with the stored ones without removing any.

    Args:
        stored: JSON of the stored messages by id, in order.
        sent: new and changed messages.
        final: ids of stored messages that must not change.

    Raises:
        ValueError: stored JSON is not a message.
    """
    by_id = {message.id: message for message in sent if message.id not in final}
    changed = {key: data for key, message in by_id.items() if stored.get(key) != (data := dump_message(message))}
    messages = [by_id.get(key) or MESSAGE.validate_json(data) for key, data in stored.items()]
    return MergedHistory([*messages, *(message for key, message in by_id.items() if key not in stored)], changed, None)


def dump_message(message: Message) -> bytes:
    """Encode a message as JSON."""
    try:
        return COPY % orjson.dumps(PLANS[type(message)](message))
    except (TypeError, KeyError):
        return without_large_integers(MESSAGE.dump_json(message, by_alias=True))


def unanswered_calls(messages: Sequence[Message]) -> Sequence[str]:
    """Return the ids of calls in the assistant's last message that have no result.

    The result is empty if a user message follows that message. Messages of subagents are ignored.
    """
    answered: set[str] = set()
    for message in reversed(messages):
        match message:
            case UserMessage():
                return []
            case ToolMessage():
                answered.add(message.tool_call_id)
            case AssistantMessage(subagent_run_id=None):
                return [call.id for call in message.tool_calls or () if call.id not in answered]
    return []


def make_title(messages: Sequence[Message]) -> str | None:
    """Return a title for a conversation: the beginning of its first user message. None if that has no text."""
    for message in messages:
        if isinstance(message, UserMessage):
            text = " ".join(plain_text(message)[: 4 * MAX_TITLE].split())
            title = text if len(text) <= MAX_TITLE else f"{text[: MAX_TITLE - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"
            return title or None
    return None


def plain_text(message: UserMessage) -> str:
    """Return the text of a message without its media."""
    content = message.content
    return content if isinstance(content, str) else " ".join(part.text for part in content if part.type == "text")
