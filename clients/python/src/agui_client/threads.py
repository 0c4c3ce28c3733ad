"""Threads as AGUI Container keeps them: a thread, or the changes since a token, taken over into a session.

Source: ``docs/threads.md`` of AGUI Container.
"""

from collections.abc import Sequence
from functools import cache

from ag_ui.core import Message
from pydantic import TypeAdapter

from agui_client.session_record import SessionRecord, SessionStatus
from agui_client.transport import Frame


def apply_thread(record: SessionRecord, thread: Frame) -> None:
    """Take over the fields that a thread or a delta has."""
    conversation = record.conversation
    title = thread.get("title")
    conversation.title = title if isinstance(title, str) else None
    if "messages" in thread:
        changed = _adapter().validate_python(thread["messages"])
        order = thread.get("order")
        conversation.replace(_merged(conversation.messages, changed, order if isinstance(order, Sequence) else None))
    if "state" in thread:
        conversation.state = thread["state"]
    if "status" in thread:
        is_ours = thread["status"] == SessionStatus.CLIENT_TOOL_TURN
        record.pending_calls = conversation.open_calls if is_ours else []


def message_id_of(messages: Sequence[Message], message: str | int) -> str:
    """Return the id of a message that is named by its id or its index. Raises ``LookupError``."""
    if isinstance(message, int):
        return messages[message].id
    if all(each.id != message for each in messages):
        raise LookupError(f"There is no message {message!r} in this session.")
    return message


def _merged(known: Sequence[Message], changed: Sequence[Message], order: Sequence[str] | None) -> list[Message]:
    """Known messages with the changed ones in their places, and new ones at the end."""
    messages = {message.id: message for message in (*known, *changed)}
    if order is None:
        return list(messages.values())
    return [messages[message_id] for message_id in order if message_id in messages]


@cache
def _adapter() -> TypeAdapter[list[Message]]:
    return TypeAdapter(list[Message])
