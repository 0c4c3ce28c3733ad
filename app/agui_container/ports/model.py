"""Port of models: a prompt in, deltas out.

Rule: no detail of a provider's wire format is visible to the callers of a model.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from ag_ui.core import Message, TokenUsage
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct


@dataclass(frozen=True, slots=True)
class Prompt:
    """Input of one model call: the instructions, the conversation as AG-UI messages, and the tools."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()


class TextDelta(Struct, frozen=True):
    """A piece of the answer."""

    text: str


class ReasoningDelta(Struct, frozen=True):
    """A piece of the model's reasoning."""

    text: str


class EncryptedDelta(Struct, frozen=True):
    """Opaque value of a reasoning block (a signature, redacted content). The next prompt must return it unchanged.

    It ends the open reasoning block. Without an open block it is a block of its own, without text.
    """

    value: str


class ToolCallDelta(Struct, frozen=True):
    """A piece of a tool call. ``index`` distinguishes parallel calls. The first piece of each call has ``name``."""

    index: int
    arguments: str = ""
    name: str | None = None


class UsageDelta(Struct, frozen=True):
    """Token usage of the call. As AG-UI requires, totals include cached and reasoning tokens."""

    usage: TokenUsage


class StopReason(StrEnum):
    """Reasons for which a model stops without a failure."""

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    FILTERED = "filtered"


class StopDelta(Struct, frozen=True):
    """End of the model's output. There is at most one, before or after ``UsageDelta``."""

    reason: StopReason


Delta = TextDelta | ReasoningDelta | EncryptedDelta | ToolCallDelta | UsageDelta | StopDelta


class Model(Protocol):
    """A language model. Failures are raised as ``AppError`` with a ``MODEL_*`` code."""

    @property
    def provider(self) -> str:
        """Provider of the model, as in ``TokenUsage``."""

    @property
    def name(self) -> str:
        """Name of the model at the provider, as in ``TokenUsage``."""

    def stream(self, prompt: Prompt) -> AsyncIterator[Delta]:
        """Call the model once and iterate over its deltas. Cancelling the iteration cancels the call."""


@runtime_checkable
class ContextWindowed(Protocol):
    """A model that may know its context window. It is only reported; the operator's budget limits prompts."""

    @property
    def context_window(self) -> int | None:
        """Number of tokens of a prompt and its answer, or None if it is unknown or has no limit."""


@runtime_checkable
class TokenCounter(Protocol):
    """A model that can count the tokens of a text. The tokens of other models are estimated."""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, 0 or more. A prefix of the text never has more tokens."""
