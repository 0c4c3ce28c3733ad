"""Token counts of texts, messages and tools.

Rule: pure functions, no I/O. A model that implements ``ports.TokenCounter`` counts its own tokens. Otherwise a token
is estimated as four bytes of UTF-8, rounded up, and each message costs four more tokens for the framing that
providers add. A media part has a fixed price, because its cost to a model does not depend on its encoding.
"""

from collections.abc import Callable, Iterable, Sequence

from ag_ui.core import ActivityMessage, ContentPart, Message, TextPart
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from pydantic_core import to_json

from agui_core.turns import calls_of

BYTES_PER_TOKEN = 4
PER_MESSAGE = 4
MEDIA_TOKENS = 2_000
"""Estimated tokens of a part that is not text. A large image has 1,000 to 1,600 tokens, a document or a video more."""


def estimate_tokens(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


class CountedMessage(Struct, frozen=True):
    message: Message
    tokens: int


class MessageTokenCounter(Struct, frozen=True):
    """Counts the tokens of messages and tools. ``per_message`` are those of a message besides its parts."""

    count: Callable[[str], int] = estimate_tokens
    per_message: int = PER_MESSAGE

    def count_message(self, message: Message) -> CountedMessage:
        """Count a message. Encrypted values count as 0 because providers do not publish their size in tokens."""
        texts = sum(self.count(text) for text in texts_of(message))
        return CountedMessage(message, self.per_message + texts + MEDIA_TOKENS * count_media(message))

    def count_tools(self, specs: Iterable[ToolSpec]) -> int:
        return sum(self.count(f"{tool.name} {tool.description} {to_json(tool.parameters).decode()}") for tool in specs)

    def clip(self, text: str, tokens: int) -> str:
        while text and (counted := self.count(text)) > tokens:
            text = text[: len(text) * max(tokens, 0) // counted]
        return text


def texts_of(message: Message) -> Sequence[str]:
    """Return the texts of a message that a model reads, calls included."""
    texts = [part.text for part in parts_of(message) if isinstance(part, TextPart)]
    for call in calls_of(message):
        texts += [call.function.name, call.function.arguments]
    return texts


def count_media(message: Message) -> int:
    return sum(not isinstance(part, TextPart) for part in parts_of(message))


def parts_of(message: Message) -> Sequence[ContentPart]:
    if isinstance(message, ActivityMessage) or not message.content:
        return ()
    return [TextPart(text=message.content)] if isinstance(message.content, str) else message.content


def total_tokens(entries: Iterable[CountedMessage]) -> int:
    return sum(entry.tokens for entry in entries)
