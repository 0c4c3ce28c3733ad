"""What a model is: a prompt in, deltas out.

Rule: providers differ behind this; nothing of a provider's wire is visible in front of it.
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
    """One call of a model: the instructions, the conversation in AG-UI form, and the tools it may call."""

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
    """The opaque artefact of a stretch of reasoning (a signature, redacted content), to be given back unchanged.

    It ends the stretch that is open; where none is, it is a stretch of its own without text.
    """

    value: str


class ToolCallDelta(Struct, frozen=True):
    """A piece of a tool call. ``index`` tells parallel calls apart; the first piece of each carries ``name``."""

    index: int
    arguments: str = ""
    name: str | None = None


class UsageDelta(Struct, frozen=True):
    """What the call cost, in AG-UI accounting: totals include cached and reasoning tokens."""

    usage: TokenUsage


class StopReason(StrEnum):
    """Why a model stopped, where that is no failure."""

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    FILTERED = "filtered"


class StopDelta(Struct, frozen=True):
    """The model has said everything; comes at most once, before or after ``UsageDelta``."""

    reason: StopReason


Delta = TextDelta | ReasoningDelta | EncryptedDelta | ToolCallDelta | UsageDelta | StopDelta


class Model(Protocol):
    """Turns a prompt into deltas. Failures are raised as ``AppError`` with a ``MODEL_*`` code.

    Who serves it and what it is called there are said in the words of ``TokenUsage``.
    """

    @property
    def provider(self) -> str:
        """Who serves it."""

    @property
    def name(self) -> str:
        """What it is called there."""

    def stream(self, prompt: Prompt) -> AsyncIterator[Delta]:
        """One model call; cancelling the iteration abandons the call."""


@runtime_checkable
class TokenCounter(Protocol):
    """A model that knows how many tokens a text is for it; of others it is estimated."""

    def count(self, text: str) -> int:
        """The tokens of a text, 0 or more; never fewer for a longer one that begins with it."""
