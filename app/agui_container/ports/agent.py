"""What an agent and a tool are, and what they are given to work for one run.

Rule: nothing here knows a transport, a store, a model or a framework.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ag_ui.core import BaseEvent, ContentPart, Interrupt, RunAgentInput, StateDeltaEvent, StateSnapshotEvent, TokenUsage
from ag_ui.core import Tool as ToolSpec

from agui_container.ports.call_slots import CallSlots
from agui_container.protocol.expander import MessageText

Item = BaseEvent | MessageText | str
"""What an agent yields: any ``ag_ui.core`` event, text by its message's id, or a string of assistant text."""

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


Emit = Callable[[Item], None]
"""Sends what an agent could yield. Callable from any thread; raises ``IllegalEvent`` or ``PatchError``."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The state that agent and application share: the input's, as this run's events have changed it since.

    ``read`` gives the value of the moment; changes are events, so the client has them at once.
    """

    read: Callable[[], object]
    emit: Emit

    @property
    def value(self) -> object:
        """The state now, any JSON value, as the caller's own copy: changing it changes nothing."""
        return self.read()

    def replace(self, value: object) -> None:
        """Put another state in its place (STATE_SNAPSHOT)."""
        self.emit(StateSnapshotEvent(snapshot=value))

    def patch(self, *operations: Mapping[str, object]) -> None:
        """Change parts of it (STATE_DELTA) by RFC 6902 operations such as ``{"op", "path", "value"}``.

        Raises:
            ValueError: no operations, or none that apply (``PatchError``); then nothing is changed or sent.
        """
        self.emit(StateDeltaEvent.model_validate({"delta": operations}))


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may use; None, or infinity, is no limit.

    Attributes:
        steps: model calls of an assistant; each of its subagents may make as many.
        tokens: of all model calls together, as far as models report them.
        seconds: of the whole run. The engine keeps to it.
        context_tokens: of one model call's prompt. What does not fit is left out; it ends no run.
    """

    steps: int | None = None
    tokens: int | None = None
    seconds: float = math.inf
    context_tokens: int | None = None

    def capped_by(self, other: "RunLimits") -> "RunLimits":
        """The smaller of each."""
        return RunLimits(
            _smaller(self.steps, other.steps),
            _smaller(self.tokens, other.tokens),
            min(self.seconds, other.seconds),
            _smaller(self.context_tokens, other.context_tokens),
        )


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


async def next_loop_turn() -> None:
    """Let other tasks go on."""
    await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class RunContext:
    """What an agent or a tool may touch while it works for one run; nothing of the transport or the store.

    Attributes:
        caller: who asks; its ``headers`` hold the forwarded headers and tokens.
        tools: the server's tools by name.
        new_id: makes a fresh id for a message or a tool call.
        logger: log lines with the run's ids.
        emit: send an event from where nothing can be yielded, as in a tool; from any thread. It raises for what is
            illegal, and does nothing once the run has ended. RUN_STARTED and the terminal events are not a tool's.
        state: the shared state, to read and to change.
        usage: append one ``TokenUsage`` per model call; the terminal event reports the sum, also for failed runs.
        background: hand over work that outlives the run; the server stays busy until it is done, and awaits it.
        allowance: what the run may use. Whoever makes model calls keeps to it.
        yield_turn: wait until other runs had their turn. For long work that never waits, a few milliseconds at a time.
        call_slots: bound of the tool calls that are at work at the same time, subagents included.
        tool_call_id: the call that is being run, for a tool.
        subagent_run_id: the delegated part of the run this is; None in the run's own agent.
        part_of: the client's thread that the thread of a subagent is a part of; None in the run's own agent.
    """

    thread_id: str
    run_id: str
    caller: Caller
    tools: Mapping[str, "Tool"]
    new_id: Callable[[], str]
    logger: logging.Logger
    background: Callable[[Awaitable[object]], None]
    is_cancelled: Callable[[], bool]
    emit: Emit
    state: RunState
    usage: list[TokenUsage] = field(default_factory=list)
    allowance: RunLimits = RunLimits()
    yield_turn: Callable[[], Awaitable[None]] = next_loop_turn
    call_slots: CallSlots = field(default_factory=CallSlots)
    tool_call_id: str | None = None
    subagent_run_id: str | None = None
    part_of: str | None = None

    @property
    def cancelled(self) -> bool:
        """Whether the run is over for its readers. For code in threads, which cannot be interrupted: look and leave."""
        return self.is_cancelled()

    @property
    def log_fields(self) -> dict[str, str]:
        """The ids that log lines of the run carry."""
        fields = {"requestId": self.caller.request_id, "threadId": self.thread_id, "runId": self.run_id}
        if self.caller.session_id:
            fields["sessionId"] = self.caller.session_id
        return fields

    @property
    def workload_token(self) -> str | None:
        """AgentCore's workload access token, under its newer or older header name."""
        headers = self.caller.headers
        return headers.get("x-amz-bedrock-agentcore-identity-wat") or headers.get("workloadaccesstoken")


class Agent(Protocol):
    """Turns one ``RunAgentInput`` into events.

    It may leave out RUN_STARTED and the terminal event: the engine sends the first and supplies a missing last.
    Raising ends the run with RUN_ERROR: an ``AppError`` shows its message, anything else a general one.
    """

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """Yield the run's events in order."""


@runtime_checkable
class Responder(Protocol):
    """An agent that only answers: where nothing is said, and nothing was, it has nothing to do.

    Other agents may speak first, on a thread that is new.
    """

    async def pending_interrupts(self, caller: Caller, thread_id: str) -> Sequence[Interrupt]:
        """What it has asked on this thread and what waits for an answer. Raises ``AppError`` STORE_UNAVAILABLE."""


@runtime_checkable
class ThreadCleanup(Protocol):
    """An agent that keeps something of threads by itself, beside the store."""

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        """The thread is being deleted. Raising keeps it, so that its deletion can be tried again."""


ToolContent = str | list[ContentPart]
"""What a tool gives: text or content parts, as in TOOL_CALL_RESULT and in a tool message."""


class Tool(Protocol):
    """A function that the server runs for a model."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Run it. The content goes back to the model; raise ``ToolError`` for what the model may read and correct."""
