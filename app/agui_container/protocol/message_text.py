"""Text of a message that is open, by its id: what TEXT_MESSAGE_CONTENT says, without making an event.

Rule: it means exactly that event with these two fields (decision 0031).
"""

from msgspec import Struct


class MessageText(Struct, frozen=True):
    """More text of a message that TEXT_MESSAGE_START has begun."""

    message_id: str
    delta: str
