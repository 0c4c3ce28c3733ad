"""The seams: what an agent, a model, a tool and a clock are to the engine, and what an agent is given.

Rule: small Protocols and frozen data, nothing that knows a transport or a store. Plug-ins (agents, models, tools)
import this module and ``core`` only.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ag_ui.core import BaseEvent, ContentPart, Message, RunAgentInput, TokenUsage
from ag_ui.core import Tool as ToolSpec

Item = BaseEvent | str
"""What an agent yields: any ``ag_ui.core`` event, or a string of assistant text."""

LOG_FIELDS: ContextVar[Mapping[str, str]] = ContextVar("LOG_FIELDS", default={})  # noqa: B039 - never mutated
"""Ids that every log line of the current request or run carries. Follows tasks and worker threads."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as an edge found out. Never read from a request body.

    ``owner`` is the scope that threads and runs belong to; two callers with one owner see the same runs.
    ``headers`` are lower-cased names to values, without cookies and transport headers; they may hold tokens, so they
    are left out of ``repr``.
    """

    owner: str
    request_id: str
    session_id: str | None = None
    principal: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Timer(Protocol):
    """A callback that is due and can be called off."""

    def cancel(self) -> None:
        """Call it off; harmless when it has already run."""


class Clock(Protocol):
    """Time, so that tests can own it."""

    def time(self) -> float:
        """Seconds since the Unix epoch."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run ``callback`` on the event loop after ``delay`` seconds."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What an agent may touch while it answers one run; nothing of the transport or the store.

    Attributes:
        caller: who asks; its ``headers`` hold the forwarded headers and tokens.
        tools: the server's tools by name.
        new_id: makes a fresh id for a message or a tool call.
        logger: log lines with the run's ids.
        usage: append one ``TokenUsage`` per model call; the terminal event reports the sum, also for failed runs.
        background: hand over work that outlives the run; the server stays busy until it is done, and awaits it.
    """

    thread_id: str
    run_id: str
    caller: Caller
    tools: Mapping[str, "Tool"]
    new_id: Callable[[], str]
    logger: logging.Logger
    background: Callable[[Awaitable[object]], None]
    is_cancelled: Callable[[], bool]
    usage: list[TokenUsage] = field(default_factory=list)

    @property
    def cancelled(self) -> bool:
        """Whether the run is over for its readers. For code in threads, which cannot be interrupted: look and leave."""
        return self.is_cancelled()

    @property
    def workload_token(self) -> str | None:
        """AgentCore's workload access token, under its newer or older header name (reference 1.2)."""
        headers = self.caller.headers
        return headers.get("x-amz-bedrock-agentcore-identity-wat") or headers.get("workloadaccesstoken")


class Agent(Protocol):
    """Turns one ``RunAgentInput`` into events.

    It may leave out RUN_STARTED and the terminal event: the engine sends the first and supplies a missing last.
    Raising ends the run with RUN_ERROR: an ``AppError`` shows its message, anything else a general one.
    """

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """Yield the run's events in order."""


# --- models ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompt:
    """One call of a model: the instructions, the conversation in AG-UI form, and the tools it may call."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class EncryptedDelta:
    """The opaque artefact of a stretch of reasoning (a signature, redacted content), to be given back unchanged.

    It ends the stretch that is open; where none is, it is a stretch of its own without text.
    """

    value: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call. ``index`` tells parallel calls apart; the first piece of each carries ``name``."""

    index: int
    arguments: str = ""
    name: str | None = None


@dataclass(frozen=True, slots=True)
class UsageDelta:
    """What the call cost, in AG-UI accounting: totals include cached and reasoning tokens."""

    usage: TokenUsage


class StopReason(StrEnum):
    """Why a model stopped, where that is no failure."""

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    FILTERED = "filtered"


@dataclass(frozen=True, slots=True)
class StopDelta:
    """The model has said everything; comes at most once, before or after ``UsageDelta``."""

    reason: StopReason


Delta = TextDelta | ReasoningDelta | EncryptedDelta | ToolCallDelta | UsageDelta | StopDelta


class Model(Protocol):
    """Turns a prompt into deltas. Failures are raised as ``AppError`` with a ``MODEL_*`` code."""

    def stream(self, prompt: Prompt) -> AsyncIterator[Delta]:
        """One model call; cancelling the iteration abandons the call."""


# --- tools ----------------------------------------------------------------------------------------------------------

ToolContent = str | list[ContentPart]
"""What a tool gives: text or content parts, as in TOOL_CALL_RESULT and in a tool message."""


class Tool(Protocol):
    """A function that the server runs for a model."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Run it. The content goes back to the model; raise ``ToolError`` for what the model may read and correct."""


class ToolSource(Protocol):
    """Tools that are known only at run time, such as those of an MCP server. A fixed tool needs no source."""

    @property
    def name(self) -> str:
        """What the source is called in logs and towards clients."""

    async def tools(self, ctx: RunContext) -> Sequence[Tool]:
        """The tools for this run; asked once per run, so a source keeps what it found.

        Raises:
            ToolError: there are none for now; the run goes on without them, and the client is told the message.
        """

    async def aclose(self) -> None:
        """Let go of connections and processes. The source can be used again afterwards."""


class ToolError(Exception):
    """A tool could not do what was asked. The message goes to the model and the client."""


class Permission(StrEnum):
    """What a policy says of a tool."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Ruling:
    """A permission and why. ``category`` groups tools for people, such as ``physical``."""

    permission: Permission
    reason: str | None = None
    category: str | None = None


Policy = Callable[[str], Ruling]
"""The ruling on a tool, by its name."""
