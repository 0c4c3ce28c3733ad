"""Merge of a thread's stored messages with the messages that a client sends.

Rule: messages are merged by id, and the sent message replaces the stored one. A client that sends the first stored
message, or the user's first one, sends the whole conversation, so stored messages that are missing are removed. Any
other client sends only new messages. New messages before the first stored one that a client sends are a beginning that
it makes anew for each request (``Beginning``). They replace the former one, also where the client sends only the last
messages of the thread. A conversation under new message ids is recognised by its content (``match``).
Messages that were added after the client sent its request are never removed (``append_history``). Results of server
tools, reasoning and encrypted values stay (``stored_parts``). Source: AG-UI spec 1.1, basic/threads; docs/threads.md.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from itertools import islice, takewhile

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


class Beginning(Struct, frozen=True):
    """New messages before the first stored one that a client sends, such as a greeting, instructions or a page's text.

    Attributes:
        new_ids: ids of the new messages.
        stored_ids: the ids of the stored messages that they replace, by their own ids.
    """

    new_ids: Collection[str]
    stored_ids: Mapping[str, str]

    @classmethod
    def of(cls, stored: Mapping[str, bytes], sent: Sequence[Message]) -> "Beginning":
        """Return the beginning among the sent messages. It is empty if none of them is stored.

        It replaces the first messages of the thread if they have the same roles and one of the user follows. Otherwise,
        each of its messages replaces one of the same role before the user's first.

        Raises:
            ValueError: stored JSON is not a message.
        """
        new = list(takewhile(lambda message: message.id not in stored, sent))
        if len(new) in {0, len(sent)} or any(isinstance(message, ToolMessage) for message in new):
            return cls((), {})
        *former, following = map(MESSAGE.validate_json, islice(stored.values(), len(new) + 1))
        if not (is_users(following) and [each.role for each in former] == [each.role for each in new]):
            former = list(takewhile(is_not_users, map(MESSAGE.validate_json, stored.values())))
        sent_ids = {message.id for message in sent}
        former = [message for message in former if message.id not in sent_ids]
        stored_ids: dict[str, str] = {}
        for message in new:
            same_role = (each.id for each in former if each.role == message.role)
            if (stored_id := next((id_ for id_ in same_role if id_ not in stored_ids.values()), None)) is not None:
                stored_ids[message.id] = stored_id
        return cls([message.id for message in new], stored_ids)

    def with_stored_ids(self, sent: Sequence[Message]) -> Sequence[Message]:
        """Return the sent messages with the ids of the messages that they replace."""
        ids = self.stored_ids
        return [each.model_copy(update={"id": ids[each.id]}) if each.id in ids else each for each in sent]


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
    if not stored:
        return MergedHistory(sent, {message.id: dump_message(message) for message in sent}, None)
    sent = with_encrypted_values(stored, sent)
    beginning = Beginning.of(stored, sent)
    is_all_sent, sent = is_whole(stored, sent, beginning), beginning.with_stored_ids(sent)
    if not is_all_sent:
        conversation = recognise_conversation(stored, sent, authors)
        if conversation is not None:
            return replace_history(stored, conversation)
        sent = with_server_results(stored, sent, authors, is_whole=False)
        return append_history(stored, sent, first_ids=beginning.new_ids)
    sent = with_reasoning(stored, with_server_results(stored, sent, authors, is_whole=True))
    encoded = {message.id: dump_message(message) for message in sent}
    changed = {key: data for key, data in encoded.items() if stored.get(key) != data}
    appended_order = list(dict.fromkeys([*(key for key in stored if key in encoded), *encoded]))
    sent_order = list(dict.fromkeys(message.id for message in sent))
    is_appended = len(appended_order) == len({**stored, **encoded}) and appended_order == sent_order
    return MergedHistory(sent, changed, None if is_appended else sent_order)


def is_whole(stored: Mapping[str, bytes], sent: Sequence[Message], beginning: Beginning) -> bool:
    """Return True if the sent messages contain the first stored one, or the first stored one of the user.

    If they begin anew, they need to contain the first stored message after those that their beginning replaces.

    Raises:
        ValueError: stored JSON is not a message.
    """
    ids = {message.id for message in sent}
    former = beginning.stored_ids.values()
    return next(key for key in stored if key not in former) in ids or first_user_message(stored) in ids


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

    A beginning that the client makes anew counts as a copy of the messages that it would replace.
    """
    conversation = recognise_conversation(stored, sent, authors)
    if conversation is not None:
        return [message for message in conversation if message.id not in stored]
    copies = Beginning.of(stored, sent).stored_ids
    return [message for message in sent if message.id not in copies]


def append_history(
    stored: Mapping[str, bytes],
    sent: Sequence[Message],
    final: Container[str] = (),
    first_ids: Collection[str] = (),
) -> MergedHistory:
    """Merge sent messages with the stored ones without removing any.

    Args:
        stored: JSON of the stored messages by id, in order.
        sent: new and changed messages.
        final: ids of stored messages that must not change.
        first_ids: ids of new messages that are put before the stored ones.

    Raises:
        ValueError: stored JSON is not a message.
    """
    by_id = {message.id: message for message in sent if message.id not in final}
    changed = {key: data for key, message in by_id.items() if stored.get(key) != (data := dump_message(message))}
    messages = [by_id.get(key) or MESSAGE.validate_json(data) for key, data in stored.items()]
    first = [by_id[key] for key in first_ids if key in by_id]
    last = [message for key, message in by_id.items() if key not in stored and key not in first_ids]
    together = [*first, *messages, *last]
    return MergedHistory(together, changed, [message.id for message in together] if first else None)


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
