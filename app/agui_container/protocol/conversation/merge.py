"""What a thread's messages are when a client speaks again: what is kept, and what it sends.

Rule: messages are merged by id, and what a client sends wins. A client that sends the conversation from its first
message on sends all of it, so what it leaves out is gone; one that sends something else sends what is new. A client
that makes new ids for each request is recognised by content (``conversation_match``). Nobody leaves out what was said
after it had spoken. Source: AG-UI spec 1.1, basic/threads; docs/threads.md.
"""

from collections.abc import Container, Mapping, Sequence

import orjson
from ag_ui.core import AssistantMessage, Message, ToolMessage, UserMessage
from msgspec import Struct
from pydantic import TypeAdapter

from agui_container.protocol.conversation.match import match_conversation
from agui_container.protocol.encoder import COPY, PLANS
from agui_container.protocol.strict_json import without_large_integers

MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)

MAX_TITLE = 80
"""Characters of a title that is made."""


class MergedHistory(Struct, frozen=True):
    """A conversation as an agent is to see it, and what has changed of what is kept.

    Attributes:
        messages: all of them, in order.
        changed: new or changed ones: id to JSON, in order.
        order: the ids of all; None where new ones at the end make it.
    """

    messages: Sequence[Message]
    changed: Mapping[str, bytes]
    order: Sequence[str] | None


def merge_history(kept: Mapping[str, bytes], sent: Sequence[Message]) -> MergedHistory:
    """Put what was sent to what is kept, which is id to JSON in order. Raises ``ValueError`` for JSON that is none."""
    if kept and next(iter(kept)) not in {message.id for message in sent}:
        conversation = recognised(kept, sent)
        return append_history(kept, sent) if conversation is None else rewritten(kept, conversation)
    written = {message.id: dump_message(message) for message in sent}
    changed = {key: data for key, data in written.items() if kept.get(key) != data}
    after = list(dict.fromkeys([*(key for key in kept if key in written), *written]))
    whole = list(dict.fromkeys(message.id for message in sent))
    same = len(after) == len({**kept, **written}) and after == whole
    return MergedHistory(sent, changed, None if same else whole)


def recognised(kept: Mapping[str, bytes], sent: Sequence[Message]) -> list[Message] | None:
    """The whole conversation, if it was sent under ids that are all new; with kept messages in place of their copies.

    Raises:
        ValueError: kept JSON is not a message.
    """
    if not any(isinstance(message, AssistantMessage) for message in sent) or any(each.id in kept for each in sent):
        return None
    return match_conversation([MESSAGE.validate_json(data) for data in kept.values()], sent)


def rewritten(kept: Mapping[str, bytes], conversation: Sequence[Message]) -> MergedHistory:
    """The same for a conversation in which every message with a kept id is the kept one."""
    order = list(dict.fromkeys(message.id for message in conversation))
    new = {message.id: dump_message(message) for message in conversation if message.id not in kept}
    return MergedHistory(conversation, new, None if order == [*kept, *new] else order)


def without_copies(kept: Mapping[str, bytes], sent: Sequence[Message]) -> Sequence[Message]:
    """The sent messages, less those that are copies of kept ones under new ids."""
    conversation = recognised(kept, sent)
    return sent if conversation is None else [message for message in conversation if message.id not in kept]


def append_history(kept: Mapping[str, bytes], sent: Sequence[Message], final: Container[str] = ()) -> MergedHistory:
    """The same for what leaves nothing out. ``final`` are ids of kept messages that stay as they are."""
    said = {message.id: message for message in sent if message.id not in final}
    changed = {key: data for key, message in said.items() if kept.get(key) != (data := dump_message(message))}
    messages = [said.get(key) or MESSAGE.validate_json(data) for key, data in kept.items()]
    return MergedHistory([*messages, *(message for key, message in said.items() if key not in kept)], changed, None)


def dump_message(message: Message) -> bytes:
    """A message as JSON."""
    try:
        return COPY % orjson.dumps(PLANS[type(message)](message))
    except (TypeError, KeyError):
        return without_large_integers(MESSAGE.dump_json(message, by_alias=True))


def unanswered_calls(messages: Sequence[Message]) -> Sequence[str]:
    """The calls of the assistant's last message that have no result yet; none once the user has spoken after it.

    What a subagent says in between is not the assistant's word.
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
    """A title for a conversation: how its first user began. None where that says nothing."""
    for message in messages:
        if isinstance(message, UserMessage):
            words = " ".join(plain_text(message)[: 4 * MAX_TITLE].split())
            short = words if len(words) <= MAX_TITLE else f"{words[: MAX_TITLE - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"
            return short or None
    return None


def plain_text(message: UserMessage) -> str:
    """The words of a message, without its pictures."""
    content = message.content
    return content if isinstance(content, str) else " ".join(part.text for part in content if part.type == "text")
