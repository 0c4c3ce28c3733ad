"""The tools of one run: which the server runs, which the client runs, and what running one gives.

Rules: a server tool wins over a client tool of the same name; a call always gets an answer, whatever its tool does, and
one that can be sent, and that says so where it is a failure; only ``ToolError`` texts leave the server, other
exceptions go to the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ag_ui.core import (
    MessagesSnapshotEvent,
    ResumeEntry,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
)
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct, structs
from pydantic import ValidationError
from pydantic_core import from_json

from app.agents.results import Result, failure, shown
from app.agents.turn import Call
from app.core.encoder import encode
from app.core.errors import IllegalEvent
from app.ports import (
    Permission,
    Policy,
    Previewing,
    Resumable,
    Ruling,
    RunContext,
    Suspended,
    Suspension,
    Tool,
    ToolContent,
    ToolError,
)
from app.telemetry import ToolCall

T = TypeVar("T")

Answered = Result | Suspension
"""The result of a call, or that it waits for somebody's answer."""

SURE_CHARACTERS = 1_000_000
"""Characters of ASCII text that can be sent, whatever they are: JSON takes six bytes for one at most."""

NOT_SENDABLE = "Error: the tool's result cannot be sent."


class Toolbox(Struct, frozen=True):
    """Server tools and the client's tool descriptions, by name. Not ``complete`` while a source cannot be reached.

    Tools are timed by ``steady``, in seconds.
    """

    server: Mapping[str, Tool]
    client: Mapping[str, ToolSpec]
    policy: Policy
    complete: bool
    steady: Callable[[], float]

    @classmethod
    def of(
        cls,
        tools: Sequence[Tool],
        offered: Sequence[ToolSpec],
        policy: Policy,
        *,
        complete: bool = True,
        steady: Callable[[], float],
    ) -> "Toolbox":
        """Put the server's tools and those that a client offers into one box."""
        server = {tool.spec.name: tool for tool in tools}
        client = {spec.name: spec for spec in offered if spec.name not in server}
        return cls(server, client, policy, complete, steady)

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """What the model may call."""
        return [*(tool.spec for tool in self.server.values()), *self.client.values()]

    def parted(self, calls: Sequence[Call]) -> tuple[list[str], list[Call]]:
        """The ids of those that are the client's to run, and the others."""
        left = {call.id: None for call in calls if self.left_to_client(call)}
        return list(left), [call for call in calls if call.id not in left]

    def left_to_client(self, call: Call) -> bool:
        """Whether the client runs this call."""
        return call.complete and call.name in self.client

    def out_of_reach(self, call: Call) -> bool:
        """Whether the call's tool may be one of a source that cannot be reached now."""
        return call.name not in self.server and not self.complete

    def asks(self, call: Call) -> Ruling | None:
        """The ruling that somebody must approve this call; None where it can be answered at once."""
        ruling = self.policy(call.name)
        if self.refusal(call) is not None or ruling.permission is not Permission.ASK or not is_object(call.arguments):
            return None
        return ruling

    def refusal(self, call: Call) -> str | None:
        """Why a call is not run at all."""
        if not call.complete:
            return "Error: the answer was cut off before this call was complete."
        if call.name not in self.server:
            return f"Error: there is no tool named '{call.name}'."
        ruling = self.policy(call.name)
        if ruling.permission is Permission.DENY:
            return f"Error: this tool is not allowed{f': {ruling.reason}' if ruling.reason else '.'}"
        return None

    async def preview(self, call: Call, ctx: RunContext) -> str | None:
        """A text that shows people the effect of a call; None where its tool offers none, or fails to."""
        tool = self.server.get(call.name)
        if not isinstance(tool, Previewing):
            return None
        try:
            return await tool.preview(arguments_of(call), replace(ctx, tool_call_id=call.id))
        except Exception:
            ctx.logger.exception("tool preview failed tool=%s call=%s", call.name, call.id)
            return None

    async def answers(self, calls: Sequence[Call], ctx: RunContext) -> Sequence[Answered]:
        """Run the calls side by side, within the run's bound; the answers come in the order of the calls."""
        if len(calls) == 1:
            return [await self.answer(calls[0], ctx)]
        return await run_side_by_side([partial(self.answer, call, ctx) for call in calls], ctx)

    async def answer(self, call: Call, ctx: RunContext) -> Answered:
        """Run one call. What goes wrong is the answer; only the cancellation of the run is raised."""
        refusal = self.refusal(call)
        if refusal is not None:
            return failure(refusal)

        async def run(ctx: RunContext) -> ToolContent:
            return await self.server[call.name].call(arguments_of(call), ctx)

        return await answered(run, call, ctx, self.steady)

    async def resume(
        self, call: Call, suspension: Suspension, entries: Sequence[ResumeEntry], ctx: RunContext
    ) -> Answered:
        """Go on with a call that was suspended. As ``answer``."""
        tool = self.server.get(call.name)
        if not isinstance(tool, Resumable):
            return failure(f"Error: there is no tool named '{call.name}' any more.")

        async def run(ctx: RunContext) -> ToolContent:
            return await tool.resume(suspension, entries, ctx)

        return await answered(run, call, ctx, self.steady)


async def run_side_by_side(calls: Sequence[Callable[[], Awaitable[T]]], ctx: RunContext) -> list[T]:
    """Run calls that do not raise as slots of the run become free; each begins in a turn of its own.

    Returns their results in the order of the calls.
    """

    async def run(call: Callable[[], Awaitable[T]]) -> T:
        await ctx.yield_turn()
        return await call()

    return await ctx.call_slots.run([partial(run, call) for call in calls])


async def answered(
    run: Callable[[RunContext], Awaitable[ToolContent]], call: Call, ctx: RunContext, steady: Callable[[], float]
) -> Answered:
    """What running a tool gives, whatever happens; always something that a client can be sent."""
    begun = steady()
    with ToolCall(call.name, call.id, call.arguments, ctx) as span:
        answer = await _outcome(run, call, ctx, span)
        seconds = steady() - begun
        try:
            answer = _sendable(answer, call, ctx)
        except (IllegalEvent, ValidationError) as error:
            span.failed(error)
            ctx.logger.warning("tool=<%s> call=<%s> | the result cannot be sent: %s", call.name, call.id, error)
            answer = failure(NOT_SENDABLE)
        if isinstance(answer, Result):
            span.answered(answer.content)
            answer = answer.after(seconds)
    return answer


def _sendable(answer: Answered, call: Call, ctx: RunContext) -> Answered:
    """The answer, in AG-UI's own types. Raises where its event would be refused, whose ids are no longer than these."""
    if isinstance(answer, Suspension):
        outcome = RunFinishedInterruptOutcome(interrupts=list(answer.interrupts))
        encode(RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome))
        encode(MessagesSnapshotEvent(messages=list(answer.messages)))  # it is kept as JSON, too
        return answer
    text = answer.content
    if isinstance(text, str) and text.isascii() and len(text) <= SURE_CHARACTERS:
        return answer
    event = shown(answer.message(f"result-{call.id}", call.id))
    encode(event.model_copy(update={"subagent_run_id": ctx.subagent_run_id}))
    return structs.replace(answer, content=event.content)


async def _outcome(
    run: Callable[[RunContext], Awaitable[ToolContent]], call: Call, ctx: RunContext, span: ToolCall
) -> Answered:
    try:
        return Result(await run(replace(ctx, tool_call_id=call.id)))
    except Suspended as waiting:
        return waiting.suspension
    except ToolError as error:
        span.failed(error)
        return failure(f"Error: {error}")
    except TimeoutError as error:
        span.failed(error)
        ctx.logger.warning("tool=<%s> call=<%s> | the tool timed out", call.name, call.id, exc_info=True)
        return failure("Error: the tool timed out.")
    except BaseException as error:
        if not is_failure(error):
            raise
        span.failed(error)
        ctx.logger.exception("tool=<%s> call=<%s> | the tool failed", call.name, call.id)
        return failure("Error: the tool failed.")


def arguments_of(call: Call) -> Mapping[str, object]:
    """The arguments of a call; models leave them empty when there are none."""
    try:
        value: object = from_json(call.arguments or "{}", allow_inf_nan=False)
    except ValueError as error:
        raise ToolError("the arguments are not valid JSON.") from error
    if not isinstance(value, dict):
        raise ToolError("the arguments are not a JSON object.")
    return value


def is_object(arguments: str) -> bool:
    """Whether the arguments are worth asking about."""
    try:
        arguments_of(Call("", "", arguments))
    except ToolError:
        return False
    return True


def is_failure(error: BaseException) -> bool:
    """Whether the tool failed, as opposed to: the run or the process is being ended.

    ``sys.exit()`` in a tool must not end the server, and a tool can raise CancelledError without being cancelled (it
    awaited a task that was).
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() == 0
    return isinstance(error, (Exception, SystemExit))
