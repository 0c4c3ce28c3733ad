"""How many tokens a text, a message and a tool are.

Rule: pure. A model that counts (``ports.Counting``) is taken at its word; for all others a token is four bytes of
UTF-8, rounded up, and every message costs four more for what providers put around it. Media are never counted by
their bytes: a picture costs a model the same however it is encoded.
"""

from collections.abc import Callable, Iterable, Sequence

from ag_ui.core import ActivityMessage, AssistantMessage, ContentPart, Message, TextPart, ToolMessage
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from pydantic_core import to_json

from agui_container.ports import Model, TokenCounter

BYTES_PER_TOKEN = 4
PER_MESSAGE = 4
MEDIA_TOKENS = 2_000
"""What a part that is not text is taken for: a large picture is 1,000 to 1,600 tokens, a document or a film more."""


def estimate_tokens(text: str) -> int:
    """The tokens of a text where the model cannot say."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


class CountedMessage(Struct, frozen=True):
    """A message, counted."""

    message: Message
    tokens: int


class MessageTokenCounter(Struct, frozen=True):
    """Counts with ``count``; ``per_message`` is what a message costs besides its texts."""

    count: Callable[[str], int] = estimate_tokens
    per_message: int = PER_MESSAGE

    @classmethod
    def for_model(cls, model: Model) -> "MessageTokenCounter":
        """The model's own way to count, or the estimate."""
        return cls(model.count, per_message=0) if isinstance(model, TokenCounter) else cls()

    def count_message(self, message: Message) -> CountedMessage:
        """The message with its tokens. Encrypted values cost nothing: providers do not say what they are worth."""
        texts = sum(self.count(text) for text in texts_of(message))
        return CountedMessage(message, self.per_message + texts + MEDIA_TOKENS * media_of(message))

    def count_tools(self, specs: Iterable[ToolSpec]) -> int:
        """The tokens of the tools that a prompt offers."""
        return sum(self.count(f"{tool.name} {tool.description} {to_json(tool.parameters).decode()}") for tool in specs)

    def clip(self, text: str, tokens: int) -> str:
        """The beginning of the text that is at most ``tokens`` long."""
        while text and (found := self.count(text)) > tokens:
            text = text[: len(text) * max(tokens, 0) // found]
        return text


def texts_of(message: Message) -> Sequence[str]:
    """The texts that a model reads of a message."""
    texts = [part.text for part in parts_of(message) if isinstance(part, TextPart)]
    if isinstance(message, ToolMessage) and message.error:
        texts.append(message.error)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls or ():
            texts += [call.function.name, call.function.arguments]
    return texts


def media_of(message: Message) -> int:
    """How many parts of a message are not text."""
    return sum(not isinstance(part, TextPart) for part in parts_of(message))


def parts_of(message: Message) -> Sequence[ContentPart]:
    """The content as parts; an activity has none."""
    if isinstance(message, ActivityMessage) or not message.content:
        return ()
    return [TextPart(text=message.content)] if isinstance(message.content, str) else message.content


def total_tokens(entries: Iterable[CountedMessage]) -> int:
    """The tokens of several messages."""
    return sum(entry.tokens for entry in entries)
