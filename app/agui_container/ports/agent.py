"""Ports of agents and tools, and the context of one run that they receive.

Rule: nothing here depends on a transport, a store, a model or a framework.
"""

import asyncio
import logging
import math
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from ag_ui.core import BaseEvent, ContentPart, Interrupt, RunAgentInput, StateDeltaEvent, StateSnapshotEvent, TokenUsage
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct, field

from agui_container.ports.auth import Caller, session_label, thread_key
from agui_container.ports.files import File, no_file
from agui_container.ports.records import ThreadNote
from agui_container.ports.tool_calls import CallRules, CallSlots, ClientOffer
from agui_core.expander import MessageText

T = TypeVar("T")

Item = BaseEvent | MessageText | str
"""Output of an agent: any ``ag_ui.core`` event, text for an open message, or a string of assistant text."""

LOG_FIELDS: ContextVar[Mapping[str, str]] = ContextVar("LOG_FIELDS", default={})  # noqa: B039 - never mutated
"""Ids in every log line of the current request or run. Tasks and worker threads inherit them."""

AUTHORIZATION = "Authorization"


class maybe_aclosing(Generic[T]):  # noqa: N801 - used like a function
    """Context manager like ``contextlib.aclosing`` that also accepts iterators without ``aclose``.

    Whatever opens the items of an agent, a model or a bus closes them, also if it stops early. Otherwise the
    ``finally`` blocks of a generator would run later, in another task.
    """

    __slots__ = ("_items",)

    def __init__(self, items: AsyncIterator[T]) -> None:
        self._items = items

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._items

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._items, "aclose", None)
        if close is not None:
            await close()


class Timer(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Cancel the callback. It does nothing if the callback has already run."""


class Clock(Protocol):
    """Source of time. Tests replace it."""

    def time(self) -> float:
        """Return the seconds since the Unix epoch."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run ``callback`` on the event loop after ``delay`` seconds."""


class SystemClock:
    """The time of the operating system."""

    def time(self) -> float:
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)


Emit = Callable[[Item], None]
"""Function that sends an item. It can be called from any thread. Raises ``IllegalEvent`` or ``PatchError``."""


class RunState(Struct, frozen=True):
    """Shared state of agent and application: the state of the input with the changes of this run.

    Every change is sent as an event, so the client has it at once.

    Attributes:
        read: returns a copy of the current state.
        emit: sends the event of a change.
    """

    read: Callable[[], object]
    emit: Emit

    @property
    def value(self) -> object:
        """Copy of the current state, any JSON value. Changing the copy does not change the state."""
        return self.read()

    def replace(self, value: object) -> None:
        """Replace the state (STATE_SNAPSHOT)."""
        self.emit(StateSnapshotEvent(snapshot=value))

    def patch(self, *operations: Mapping[str, object]) -> None:
        """Change parts of the state (STATE_DELTA) by RFC 6902 operations such as ``{"op", "path", "value"}``.

        Without operations nothing is sent.

        Raises:
            ValueError: an operation does not apply (``PatchError``). Nothing is changed or sent.
        """
        if operations:
            self.emit(StateDeltaEvent.model_validate({"delta": operations}))


class RunLimits(Struct, frozen=True):
    """Limits of one run. None and infinity mean no limit.

    Attributes:
        steps: number of model calls of an assistant. Each of its subagents has the same limit of its own.
        tokens: total number of tokens of all model calls, as far as models report them.
        seconds: duration of the run. The engine enforces it.
        context_tokens: tokens of the prompt of one model call. A longer conversation is shortened.
    """

    steps: int | None = None
    tokens: int | None = None
    seconds: float = math.inf
    context_tokens: int | None = None

    def capped_by(self, other: "RunLimits") -> "RunLimits":
        """Return limits with the smaller value of each field."""
        return RunLimits(
            _smaller(self.steps, other.steps),
            _smaller(self.tokens, other.tokens),
            min(self.seconds, other.seconds),
            _smaller(self.context_tokens, other.context_tokens),
        )


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


async def next_loop_turn() -> None:
    """Let other tasks of the event loop run."""
    await asyncio.sleep(0)


class RunInterrupted(BaseException):
    """The run cannot continue without answers. Raised by an agent or a tool, it ends the run with the interrupts.

    It is no ``Exception``, because frameworks and agents turn every ``Exception`` of a tool into a result.
    """

    def __init__(self, interrupts: Sequence[Interrupt]) -> None:
        super().__init__("the run waits for answers")
        self.interrupts = tuple(interrupts)


def interrupts_of(error: BaseException) -> Sequence[Interrupt]:
    """Return the interrupts of a ``RunInterrupted`` or of a group that has nothing else. Other errors have none."""
    if isinstance(error, RunInterrupted):
        return error.interrupts
    if not isinstance(error, BaseExceptionGroup):
        return ()
    parts = [interrupts_of(part) for part in error.exceptions]
    return list({each.id: each for part in parts for each in part}.values()) if all(parts) else ()


class PendingResult(Coroutine[Any, Any, "ToolContent"]):
    """Result of a call of ``RunContext.call_tool``. Await it on the event loop, or take ``result()`` in a thread.

    It is a coroutine, so that ``asyncio.create_task`` takes it.
    """

    @abstractmethod
    def result(self) -> "ToolContent":
        """Block until the call has ended. Only for code in a thread, such as a plain generator."""


class ToolCaller(Protocol):
    """Function of ``RunContext.call_tool``."""

    def __call__(
        self, name: str, arguments: Mapping[str, object] | None = None, *, call_id: str | None = None
    ) -> PendingResult:
        """Call a tool of the server under the tool policy.

        The call and its result are sent to the client and kept in the thread, unless ``call_id`` says that a framework
        has announced the call under that id.

        Raises:
            ToolError: the call failed, or the policy or a person denied it.
            RunInterrupted: a person must answer first. The run ends, and the next run with the answer calls the agent
                again. There the same call returns its result at once.
        """


def _no_tools(name: str, arguments: Mapping[str, object] | None = None, *, call_id: str | None = None) -> PendingResult:  # noqa: ARG001 - as in the protocol
    """Refuse a call outside of the agent that ``AGUI_AGENT`` names."""
    raise RuntimeError("ctx.call_tool belongs to the agent of the run: tools and subagents have none.")


class TurnFacts(Struct):
    """Facts of a run about the turn to which it belongs. The engine and the gate for tool calls share them.

    A turn lasts from a message of the user to the success, failure or cancellation of its answer.

    Attributes:
        notes: stored notes of the thread's journal at the start of the run; None if they were not read.
        new_ids: ids of the messages that this run has brought to the thread; None if all are new.
        stored_interrupts: ids of the interrupts that the agent has stored itself. The engine stores the others.
        started_calls: ids of the tool calls that were started. A call without a result at a failed or cancelled end
            of the run gets one that says so.
        repeated_calls: ids under which the agent announces another call than the thread has: no replay of that call.
    """

    notes: Sequence[ThreadNote] | None = None
    new_ids: Collection[str] | None = None
    stored_interrupts: set[str] = field(default_factory=set)
    started_calls: set[str] = field(default_factory=set)
    repeated_calls: set[str] = field(default_factory=set)

    def is_new(self, message_id: str) -> bool:
        """Return True if this run has brought the message to the thread."""
        return self.new_ids is None or message_id in self.new_ids


class RunContext(Struct, frozen=True):
    """Services and data for an agent or a tool during one run.

    Attributes:
        thread_id, run_id: ids of the run.
        caller: the client. Its ``headers`` have the forwarded headers and tokens.
        tools: the server's tools by name.
        new_id: returns a new id for a message or a tool call.
        logger: logger whose lines have the run's ids.
        background: accepts work that may outlive the run. The server stays busy until it is done, and awaits it.
        is_cancelled: see ``cancelled``.
        emit: sends an event from code that cannot yield, such as a tool, from any thread. It raises for an illegal
            event and does nothing after the end of the run. A tool must not send RUN_STARTED or a terminal event.
        state: the shared state.
        usage: list to which the agent appends one ``TokenUsage`` per model call. The terminal event reports the sum,
            also for failed runs.
        limits: limits of the run. An agent that makes model calls must respect them.
        call_rules: rules for tool calls of the run, also in subagents. An assistant adds its own to them.
        yield_turn: waits until other runs had their turn. For long computations: call it every few milliseconds.
        call_slots: limit of concurrent tool calls, including those of subagents.
        tool_call_id: id of the current call, for a tool.
        subagent_run_id: id of the subagent run; None in the run's own agent.
        part_of: id of the client's thread to which the thread of a subagent belongs; None in the run's own agent.
        call_tool: calls one of ``tools`` under the tool policy, with approvals. See ``ToolCaller``.
        turn: facts about the turn of the run, for the gate of tool calls.
        offer: changes of the client's tools and context during the run; None if its protocol has none.
        file: returns the file that a message of the caller names by its id, with its bytes. None if there is none (any
            more). Raises ``AppError`` STORE_UNAVAILABLE.
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
    limits: RunLimits = RunLimits()
    call_rules: CallRules = field(default_factory=CallRules)
    yield_turn: Callable[[], Awaitable[None]] = next_loop_turn
    call_slots: CallSlots = field(default_factory=CallSlots)
    tool_call_id: str | None = None
    subagent_run_id: str | None = None
    part_of: str | None = None
    call_tool: ToolCaller = _no_tools
    turn: TurnFacts = field(default_factory=TurnFacts)
    offer: ClientOffer | None = None
    file: Callable[[str], Awaitable[File | None]] = no_file

    @property
    def cancelled(self) -> bool:
        """True if the run has ended for its readers. Code in threads should check it, because it is not interrupted."""
        return self.is_cancelled()

    @property
    def log_fields(self) -> dict[str, str]:
        """Ids for the log lines of the run."""
        fields = {"requestId": self.caller.request_id, "threadId": self.thread_id, "runId": self.run_id}
        if self.caller.session_id:
            fields["sessionId"] = session_label(self.caller.session_id)
        return fields

    @property
    def session_id(self) -> str | None:
        """AgentCore's session, under the name that AWS's SDK gives it."""
        return self.caller.session_id

    @property
    def request_headers(self) -> Mapping[str, str]:
        """Forwarded headers, under the name that AWS's SDK gives them. ``Authorization`` is capitalised as there."""
        return {AUTHORIZATION if name == "authorization" else name: text for name, text in self.caller.headers.items()}

    @property
    def thread_key(self) -> str:
        """Id of the thread that no other owner has. Memory of an agent or a framework belongs to it."""
        return thread_key(self.caller.owner, self.thread_id)

    @property
    def workload_token(self) -> str | None:
        """AgentCore's workload access token, under its newer or older header name."""
        headers = self.caller.headers
        return headers.get("x-amz-bedrock-agentcore-identity-wat") or headers.get("workloadaccesstoken")


CURRENT_RUN: ContextVar[RunContext | None] = ContextVar("CURRENT_RUN", default=None)
"""Context of the current run, for tools of frameworks. Tasks and worker threads inherit it."""


def current_run() -> RunContext:
    """Return the context of the current run.

    Raises:
        RuntimeError: no run of this server is being executed here.
    """
    ctx = CURRENT_RUN.get()
    if ctx is None:
        raise RuntimeError("the server's tools can be used only within a run of this server.")
    return ctx


class Agent(Protocol):
    """An agent: a function from one ``RunAgentInput`` to events.

    An agent may omit RUN_STARTED and the terminal event, because the engine adds them. An exception ends the run with
    RUN_ERROR. Clients see the message of an ``AppError``, and a general message for any other exception.
    """

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """Yield the run's events in order."""


@runtime_checkable
class Responder(Protocol):
    """An agent that may only answer. Other agents may send the first message of a new thread."""

    @property
    def only_answers(self) -> bool:
        """True if the agent has nothing to do on a thread without messages."""


@runtime_checkable
class ThreadCleanup(Protocol):
    """An agent that stores data of threads outside the store."""

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        """Delete the agent's data of a thread that is being deleted.

        An exception keeps the thread, so that the deletion can be tried again.
        """


ToolContent = str | list[ContentPart]
"""Result of a tool: text or content parts, as in TOOL_CALL_RESULT and in a tool message."""


class Tool(Protocol):
    """A function that the server runs for a model."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Execute a call and return the content for the model.

        Raises:
            ToolError: the call failed. The model gets the message and may correct the call.
        """
