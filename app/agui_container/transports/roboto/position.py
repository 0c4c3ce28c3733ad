"""Position of a client in a session, as a token that the client sends back, and the difference to the session.

Rule: pure functions. A client appends to its last message and adds new messages after it. A position is therefore a
number of messages and the extent of the last one: characters of text, and number of other blocks. A digest of the
earlier messages detects a session that was edited through another protocol.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.roboto.messages import TEXT, Block, SessionMessage, text_block

TOKEN = re.compile(r"(\d{1,9})\.(\d{1,12})\.(\d{1,9})\.([01])\.([0-9a-f]{12})\.([0-9a-f]{12})\.([0-9a-f]{12})")
DIGEST_BYTES = 6


class Position(Struct, frozen=True):
    """A place in a session.

    Attributes:
        count: number of messages that the client has.
        chars, blocks: characters of text, and number of other blocks, in the last one.
        is_final: True if the last one was sent as final.
        prefix: digest of the messages that the client has.
        facts: digest of the status and the title.
        goals: digest of the goals.
    """

    count: int
    chars: int
    blocks: int
    is_final: bool
    prefix: str
    facts: str
    goals: str

    @classmethod
    def at_end_of(cls, messages: Sequence[SessionMessage], facts: object, goals: object) -> "Position":
        """Return the position after all of these messages."""
        last = messages[-1] if messages else None
        chars, blocks = (0, 0) if last is None else extent(last)
        return cls(
            len(messages),
            chars,
            blocks,
            last is None or last.is_final,
            prefix_digest(messages),
            digest(facts),
            digest(goals),
        )

    @classmethod
    def parse(cls, token: str) -> "Position":
        """Parse a token. Raises ``AppError`` VALIDATION_ERROR."""
        match = TOKEN.fullmatch(token)
        if match is None:
            raise AppError(ErrorCode.VALIDATION_ERROR, "next_token: must be a continuation_token of this session.")
        count, chars, blocks, final, prefix, facts, goals = match.groups()
        return cls(int(count), int(chars), int(blocks), final == "1", prefix, facts, goals)

    @property
    def token(self) -> str:
        """The position as text."""
        numbers = f"{self.count}.{self.chars}.{self.blocks}.{int(self.is_final)}"
        return f"{numbers}.{self.prefix}.{self.facts}.{self.goals}"


NOTHING = Position(0, 0, 0, is_final=True, prefix="", facts="", goals="")
"""The position of a client without a token."""


class PositionDelta(Struct, frozen=True):
    """Difference between a client and a session.

    Attributes:
        messages: missing messages or parts of messages, by index.
        reset_from: index from which the client must drop the messages that it has, or None.
    """

    messages: Mapping[int, SessionMessage]
    reset_from: int | None = None


def missing(messages: Sequence[SessionMessage], position: Position, *, can_drop: bool) -> PositionDelta:
    """Return the messages, or parts of them, that a client at this position does not have.

    A client adds its own message when it sends it, and another client does not have that message. A client that can
    drop messages drops all that it has added, and gets them anew. For one that cannot, ``can_drop`` is False, and
    messages that were sent come without their content.
    """
    if not position.count:
        return PositionDelta(dict(enumerate(messages)))
    count, prefix = position.count, messages[: position.count]
    if len(prefix) < count or prefix_digest(prefix) != position.prefix:
        first = 0 if can_drop else count
        return PositionDelta(dict(enumerate(messages[first:], first)), 0 if can_drop else None)
    later = dict(enumerate(messages[count:], count))
    reset_from = count if can_drop and any(message.is_sent for message in later.values()) else None
    if not can_drop:
        later = {at: with_blocks(it, []) if it.is_sent else it for at, it in later.items()}
    last = messages[count - 1]
    blocks = blocks_after(last, position.chars, position.blocks)
    if not blocks and last.is_final == position.is_final:
        return PositionDelta(later, reset_from)
    return PositionDelta({count - 1: with_blocks(last, blocks), **later}, reset_from)


def with_blocks(message: SessionMessage, blocks: list[Block]) -> SessionMessage:
    """Return a copy of the message with these blocks."""
    return replace(message, blocks=blocks)


def blocks_after(message: SessionMessage, chars: int, blocks: int) -> list[Block]:
    """Return the blocks of a message without the first characters of text and the first other blocks."""
    rest: list[Block] = []
    for block in message.blocks:
        if block["content_type"] != TEXT:
            if blocks <= 0:
                rest.append(block)
            blocks -= 1
            continue
        text = str(block["text"])
        if len(text) > chars:
            rest.append(text_block(text[chars:]))
        chars = max(chars - len(text), 0)
    return rest


def extent(message: SessionMessage) -> tuple[int, int]:
    """Return the number of characters of text, and the number of other blocks, in a message."""
    texts = [str(block["text"]) for block in message.blocks if block["content_type"] == TEXT]
    return sum(map(len, texts)), len(message.blocks) - len(texts)


def prefix_digest(messages: Sequence[SessionMessage]) -> str:
    """Return a digest of messages in order. Only the first id of the last one counts, because it may grow."""
    before = [(message.role, message.ids, extent(message)) for message in messages[:-1]]
    last = [(message.role, message.ids[:1]) for message in messages[-1:]]
    return digest([before, last])


def digest(value: object) -> str:
    """Return a short digest of a JSON value."""
    return hashlib.blake2b(to_json(value), digest_size=DIGEST_BYTES).hexdigest()
