"""What a call of a server tool gives: content, and beside it whether it failed and how long it took.

Rule: the message that a model is told and the event that a client is shown say the same, so that the history which
comes back is the one that was there.

The tools of one run: which the server runs, which the client runs, and what running one gives.

Rules: a server tool wins over a client tool of the same name; a call always gets an answer, whatever its tool does, and
one that can be sent, and that says so where it is a failure; only ``ToolError`` texts leave the server, other
exceptions go to the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ag_ui.core import (
    MessagesSnapshotEvent,
    ResumeEntry,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    ToolCallResultEvent,
    ToolMessage,
)
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct, structs
from msgspec.structs import replace as replace_struct
from pydantic import ValidationError
from pydantic_core import from_json

from agui_container.agents.assistant.model_turn import ModelToolCall
from agui_container.ports import (
    Permission,
    Policy,
    PolicyDecision,
    Previewing,
    Resumable,
    RunContext,
    Suspended,
    Suspension,
    Tool,
    ToolContent,
    ToolError,
)
from agui_container.protocol.conversation.tool_results import DURATION, FAILED
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import IllegalEvent
from agui_container.telemetry import ToolCall


class ToolResult(Struct, frozen=True):
    """The result of a call; ``metadata`` has the keys of ``core.results``, and is None where there is none to say."""

    content: ToolContent
    metadata: dict[str, Any] | None = None

    def with_duration(self, seconds: float) -> "ToolResult":
        """The same of a tool that ran as long."""
        return replace_struct(self, metadata={**(self.metadata or {}), DURATION: round(seconds * 1000)})

    def to_message(self, message_id: str, call_id: str) -> ToolMessage:
        """It as a model is told."""
        return ToolMessage(id=message_id, tool_call_id=call_id, content=self.content, metadata=self.metadata)


def failed_result(text: str) -> ToolResult:
    """The result of a call that went wrong, or was not run at all."""
    return ToolResult(text, {FAILED: True})


def result_event(result: ToolMessage) -> ToolCallResultEvent:
    """A tool message as the client sees it; the ids agree, so both keep the same history."""
    return ToolCallResultEvent(
        message_id=result.id,
        tool_call_id=result.tool_call_id,
        content=result.content,
        role="tool",
        metadata=result.metadata,
    )


T = TypeVar("T")

Answered = ToolResult | Suspension
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
    monotonic: Callable[[], float]

    @classmethod
    def build(
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

    def split_calls(self, calls: Sequence[ModelToolCall]) -> tuple[list[str], list[ModelToolCall]]:
        """The ids of those that are the client's to run, and the others."""
        left = {call.id: None for call in calls if self.is_client_call(call)}
        return list(left), [call for call in calls if call.id not in left]

    def is_client_call(self, call: ModelToolCall) -> bool:
        """Whether the client runs this call."""
        return call.complete and call.name in self.client

    def is_unavailable(self, call: ModelToolCall) -> bool:
        """Whether the call's tool may be one of a source that cannot be reached now."""
        return call.name not in self.server and not self.complete

    def approval_rule(self, call: ModelToolCall) -> PolicyDecision | None:
        """The ruling that somebody must approve this call; None where it can be answered at once."""
        ruling = self.policy(call.name)
        if self.denial(call) is not None or ruling.permission is not Permission.ASK or not is_object(call.arguments):
            return None
        return ruling

    def denial(self, call: ModelToolCall) -> str | None:
        """Why a call is not run at all."""
        if not call.complete:
            return "Error: the answer was cut off before this call was complete."
        if call.name not in self.server:
            return f"Error: there is no tool named '{call.name}'."
        ruling = self.policy(call.name)
        if ruling.permission is Permission.DENY:
            return f"Error: this tool is not allowed{f': {ruling.reason}' if ruling.reason else '.'}"
        return None

    async def preview(self, call: ModelToolCall, ctx: RunContext) -> str | None:
        """A text that shows people the effect of a call; None where its tool offers none, or fails to."""
        tool = self.server.get(call.name)
        if not isinstance(tool, Previewing):
            return None
        try:
            return await tool.preview(arguments_of(call), replace(ctx, tool_call_id=call.id))
        except Exception:
            ctx.logger.exception("tool preview failed tool=%s call=%s", call.name, call.id)
            return None

    async def run_all(self, calls: Sequence[ModelToolCall], ctx: RunContext) -> Sequence[Answered]:
        """Run the calls side by side, within the run's bound; the answers come in the order of the calls."""
        if len(calls) == 1:
            return [await self.run_one(calls[0], ctx)]
        return await run_side_by_side([partial(self.run_one, call, ctx) for call in calls], ctx)

    async def run_one(self, call: ModelToolCall, ctx: RunContext) -> Answered:
        """Run one call. What goes wrong is the answer; only the cancellation of the run is raised."""
        refusal = self.denial(call)
        if refusal is not None:
            return failed_result(refusal)

        async def run(ctx: RunContext) -> ToolContent:
            return await self.server[call.name].call(arguments_of(call), ctx)

        return await run_tool(run, call, ctx, self.monotonic)

    async def resume(
        self, call: ModelToolCall, suspension: Suspension, entries: Sequence[ResumeEntry], ctx: RunContext
    ) -> Answered:
        """Go on with a call that was suspended. As ``answer``."""
        tool = self.server.get(call.name)
        if not isinstance(tool, Resumable):
            return failed_result(f"Error: there is no tool named '{call.name}' any more.")

        async def run(ctx: RunContext) -> ToolContent:
            return await tool.resume(suspension, entries, ctx)

        return await run_tool(run, call, ctx, self.monotonic)


async def run_side_by_side(calls: Sequence[Callable[[], Awaitable[T]]], ctx: RunContext) -> list[T]:
    """Run calls that do not raise as slots of the run become free; each begins in a turn of its own.

    Returns their results in the order of the calls.
    """

    async def run(call: Callable[[], Awaitable[T]]) -> T:
        await ctx.yield_turn()
        return await call()

    return await ctx.call_slots.run([partial(run, call) for call in calls])


async def run_tool(
    run: Callable[[RunContext], Awaitable[ToolContent]],
    call: ModelToolCall,
    ctx: RunContext,
    steady: Callable[[], float],
) -> Answered:
    """What running a tool gives, whatever happens; always something that a client can be sent."""
    begun = steady()
    with ToolCall(call.name, call.id, call.arguments, ctx) as span:
        answer = await _traced_result(run, call, ctx, span)
        seconds = steady() - begun
        try:
            answer = _checked_result(answer, call, ctx)
        except (IllegalEvent, ValidationError) as error:
            span.record_error(error)
            ctx.logger.warning("tool=<%s> call=<%s> | the result cannot be sent: %s", call.name, call.id, error)
            answer = failed_result(NOT_SENDABLE)
        if isinstance(answer, ToolResult):
            span.record_result(answer.content)
            answer = answer.with_duration(seconds)
    return answer


def _checked_result(answer: Answered, call: ModelToolCall, ctx: RunContext) -> Answered:
    """The answer, in AG-UI's own types. Raises where its event would be refused, whose ids are no longer than these."""
    if isinstance(answer, Suspension):
        outcome = RunFinishedInterruptOutcome(interrupts=list(answer.interrupts))
        encode(RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=outcome))
        encode(MessagesSnapshotEvent(messages=list(answer.messages)))  # it is kept as JSON, too
        return answer
    text = answer.content
    if isinstance(text, str) and text.isascii() and len(text) <= SURE_CHARACTERS:
        return answer
    event = result_event(answer.to_message(f"result-{call.id}", call.id))
    encode(event.model_copy(update={"subagent_run_id": ctx.subagent_run_id}))
    return structs.replace(answer, content=event.content)


async def _traced_result(
    run: Callable[[RunContext], Awaitable[ToolContent]], call: ModelToolCall, ctx: RunContext, span: ToolCall
) -> Answered:
    try:
        return ToolResult(await run(replace(ctx, tool_call_id=call.id)))
    except Suspended as waiting:
        return waiting.suspension
    except ToolError as error:
        span.record_error(error)
        return failed_result(f"Error: {error}")
    except TimeoutError as error:
        span.record_error(error)
        ctx.logger.warning("tool=<%s> call=<%s> | the tool timed out", call.name, call.id, exc_info=True)
        return failed_result("Error: the tool timed out.")
    except BaseException as error:
        if not is_failure(error):
            raise
        span.record_error(error)
        ctx.logger.exception("tool=<%s> call=<%s> | the tool failed", call.name, call.id)
        return failed_result("Error: the tool failed.")


def arguments_of(call: ModelToolCall) -> Mapping[str, object]:
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
        arguments_of(ModelToolCall("", "", arguments))
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
