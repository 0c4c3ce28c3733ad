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

from ag_ui.core import AssistantMessage, Message, ToolMessage, UserMessage
from msgspec import Struct

from agui_container.conversation.match import match_conversation
from agui_container.conversation.message_json import dump_message
from agui_container.conversation.stored_parts import (
    NO_AUTHORS,
    ResultAuthors,
    with_companions,
    with_encrypted_values,
    with_server_results,
)
from agui_container.protocol.parser import MESSAGE

MAX_TITLE = 80
"""Maximum number of characters of a generated title."""


class MergedHistory(Struct, frozen=True):
    """Conversation for the agent. ``order`` is None if appending the new messages gives it."""

    messages: Sequence[Message]
    changed: Mapping[str, bytes]
    order: Sequence[str] | None


class Beginning(Struct, frozen=True):
    """New messages before the first stored one that a client sends, such as a greeting or instructions."""

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
            former = list(takewhile(lambda each: not is_users(each), map(MESSAGE.validate_json, stored.values())))
        sent_ids = {message.id for message in sent}
        former = [message for message in former if message.id not in sent_ids]
        stored_ids: dict[str, str] = {}
        for message in new:
            same_role = (each.id for each in former if each.role == message.role)
            if (stored_id := next((id_ for id_ in same_role if id_ not in stored_ids.values()), None)) is not None:
                stored_ids[message.id] = stored_id
        return cls([message.id for message in new], stored_ids)

    def with_stored_ids(self, sent: Sequence[Message]) -> Sequence[Message]:
        ids = self.stored_ids
        return [each.model_copy(update={"id": ids[each.id]}) if each.id in ids else each for each in sent]


def merge_history(
    stored: Mapping[str, bytes], sent: Sequence[Message], authors: ResultAuthors = NO_AUTHORS
) -> MergedHistory:
    """Merge the sent messages with the stored ones. Raises ``ValueError`` if stored JSON is not a message."""
    if not stored:
        return MergedHistory(sent, {message.id: dump_message(message) for message in sent}, None)
    sent = with_encrypted_values(stored, sent)
    beginning = Beginning.of(stored, sent)
    is_all_sent, sent = is_whole(stored, sent, beginning), beginning.with_stored_ids(sent)
    if not is_all_sent:
        conversation = recognise_conversation(stored, sent, authors)
        if conversation is not None:
            return whole_history(stored, conversation)
        sent = with_server_results(stored, sent, authors, is_whole=False)
        return append_history(stored, sent, first_ids=beginning.new_ids)
    sent = with_server_results(stored, sent, authors, is_whole=True)
    return whole_history(stored, with_companions(stored, sent))


def whole_history(stored: Mapping[str, bytes], messages: Sequence[Message]) -> MergedHistory:
    encoded = {message.id: dump_message(message) for message in messages}
    changed = {key: data for key, data in encoded.items() if stored.get(key) != data}
    order = list(encoded)
    return MergedHistory(messages, changed, None if order == list(dict.fromkeys([*stored, *order])) else order)


def is_whole(stored: Mapping[str, bytes], sent: Sequence[Message], beginning: Beginning) -> bool:
    """True if the first stored message, or that of the user, was sent, or the first one after a replaced beginning."""
    ids = {message.id for message in sent}
    former = beginning.stored_ids.values()
    return next(key for key in stored if key not in former) in ids or first_user_message(stored) in ids


def first_user_message(stored: Mapping[str, bytes]) -> str | None:
    return next((key for key, data in stored.items() if is_users(MESSAGE.validate_json(data))), None)


def is_users(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.subagent_run_id is None


def recognise_conversation(
    stored: Mapping[str, bytes], sent: Sequence[Message], authors: ResultAuthors
) -> list[Message] | None:
    """Return the conversation if all of it was sent under new ids, with stored messages for copies, else None."""
    if not any(isinstance(message, AssistantMessage) for message in sent) or any(each.id in stored for each in sent):
        return None
    return match_conversation([MESSAGE.validate_json(data) for data in stored.values()], sent, authors)


def merge_after_others(
    stored: Mapping[str, bytes], sent: Sequence[Message], final: Container[str], authors: ResultAuthors
) -> MergedHistory:
    """Merge messages that were sent before other runs of the thread ended. No stored message is removed."""
    sent = without_copies(stored, with_encrypted_values(stored, sent), authors)
    return append_history(stored, with_server_results(stored, sent, authors, is_whole=False), final)


def without_copies(
    stored: Mapping[str, bytes], sent: Sequence[Message], authors: ResultAuthors = NO_AUTHORS
) -> Sequence[Message]:
    """A beginning that the client makes anew counts as a copy of the messages that it would replace."""
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
    """Remove no stored message. Messages of ``final`` do not change; those of ``first_ids`` come first."""
    by_id = {message.id: message for message in sent if message.id not in final}
    changed = {key: data for key, message in by_id.items() if stored.get(key) != (data := dump_message(message))}
    messages = [by_id.get(key) or MESSAGE.validate_json(data) for key, data in stored.items()]
    first = [by_id[key] for key in first_ids if key in by_id]
    last = [message for key, message in by_id.items() if key not in stored and key not in first_ids]
    together = [*first, *messages, *last]
    return MergedHistory(together, changed, [message.id for message in together] if first else None)


def make_title(messages: Sequence[Message]) -> str | None:
    for message in messages:
        if isinstance(message, UserMessage):
            text = " ".join(plain_text(message)[: 4 * MAX_TITLE].split())
            title = text if len(text) <= MAX_TITLE else f"{text[: MAX_TITLE - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"
            return title or None
    return None


def plain_text(message: UserMessage) -> str:
    content = message.content
    return content if isinstance(content, str) else " ".join(part.text for part in content if part.type == "text")
