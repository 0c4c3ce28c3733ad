"""How much of a session a client holds, as the token that it sends back, and what it lacks.

Rule: pure. A client appends to its last message and puts new ones behind it, so a position is a count of messages and
how much of the last one was sent: characters of text, and other blocks. The digest of everything before tells whether
the session is still the one that was sent; an edit through another protocol makes it another one.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.roboto.messages import TEXT, Block, Message, text_block

TOKEN = re.compile(
    r"(\d{1,9})\.(\d{1,12})\.(\d{1,9})\.([01])\.([0-9a-f]{12})\.([0-9a-f]{12})\.([0-9a-f]{12})\.(\d{1,12})"
)
DIGEST_BYTES = 6


class Position(Struct, frozen=True):
    """A place in a session.

    Attributes:
        count: messages that the client holds.
        chars, blocks: text of the last one in characters, and its blocks of other kinds.
        is_final: whether the last one was sent as final.
        prefix: digest of the messages that it holds.
        facts: digest of the status and the title.
        goals: digest of the goals.
        unchanged_at: when the client was last told that nothing had changed, in Unix seconds; 0 where it was not.
    """

    count: int
    chars: int
    blocks: int
    is_final: bool
    prefix: str
    facts: str
    goals: str
    unchanged_at: int = 0

    @classmethod
    def behind(cls, messages: Sequence[Message], facts: object, goals: object) -> "Position":
        """Return the place behind all of these."""
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
        """Read a token. Raises ``AppError`` VALIDATION_ERROR."""
        found = TOKEN.fullmatch(token)
        if found is None:
            raise AppError(ErrorCode.VALIDATION_ERROR, "next_token: must be a continuation_token of this session.")
        count, chars, blocks, final, prefix, facts, goals, at = found.groups()
        return cls(int(count), int(chars), int(blocks), final == "1", prefix, facts, goals, int(at))

    @property
    def token(self) -> str:
        """The position as text."""
        numbers = f"{self.count}.{self.chars}.{self.blocks}.{int(self.is_final)}"
        return f"{numbers}.{self.prefix}.{self.facts}.{self.goals}.{self.unchanged_at}"


NOTHING = Position(0, 0, 0, is_final=True, prefix="", facts="", goals="")
"""The position of a client without a token."""


class Missing(Struct, frozen=True):
    """What a client lacks: messages by their indexes, and whether it must drop what it holds."""

    messages: Mapping[int, Message]
    is_reset: bool = False


def missing(messages: Sequence[Message], position: Position) -> Missing:
    """Return what a client at this position lacks of these messages."""
    if not position.count:
        return Missing(dict(enumerate(messages)))
    held = messages[: position.count]
    if len(held) < position.count or prefix_digest(held) != position.prefix:
        return Missing(dict(enumerate(messages)), is_reset=True)
    later = {at: as_sent(messages[at]) for at in range(position.count, len(messages))}
    last = messages[position.count - 1]
    blocks = blocks_after(last, position.chars, position.blocks)
    if not blocks and last.is_final == position.is_final:
        return Missing(later)
    return Missing({position.count - 1: with_blocks(last, blocks), **later})


def as_sent(message: Message) -> Message:
    """Return a message for a client that does not hold it. Its own words it has put in its place already."""
    return with_blocks(message, []) if message.sent else message


def with_blocks(message: Message, blocks: list[Block]) -> Message:
    """Return a copy of the message with these blocks."""
    return replace(message, blocks=blocks)


def blocks_after(message: Message, chars: int, blocks: int) -> list[Block]:
    """Return the blocks of a message but for so many characters of text and so many blocks of other kinds."""
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


def extent(message: Message) -> tuple[int, int]:
    """Return how many characters of text, and how many blocks of other kinds, a message has."""
    texts = [str(block["text"]) for block in message.blocks if block["content_type"] == TEXT]
    return sum(map(len, texts)), len(message.blocks) - len(texts)


def prefix_digest(messages: Sequence[Message]) -> str:
    """Return a digest of messages in order. Of the last one only its beginning counts, because it may grow."""
    before = [(message.role, message.ids, extent(message)) for message in messages[:-1]]
    last = [(message.role, message.ids[:1]) for message in messages[-1:]]
    return digest([before, last])


def digest(value: object) -> str:
    """Return a short digest of a JSON value."""
    return hashlib.blake2b(to_json(value), digest_size=DIGEST_BYTES).hexdigest()
