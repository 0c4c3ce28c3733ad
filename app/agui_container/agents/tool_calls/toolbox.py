"""The tools of one run, the server's and the client's, and the results of calling the server's.

Rules:
- A server tool takes precedence over a client tool of the same name.
- Every call gets a result that can be encoded, even if its tool fails. A failed result is marked in its metadata.
- Only the texts of ``ToolError`` reach clients and models. Other exceptions go to the log.
- The message for the model and the event for the client have the same ids and content, so that the history that the
  client sends back equals the server's.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeGuard, TypeVar

from ag_ui.core import (
    MessagesSnapshotEvent,
    ResumeEntry,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    TextPart,
)
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct, structs
from pydantic import ValidationError

from agui_container.agents.tool_calls.tool_call import ModelToolCall, ToolResult, failed_result, result_event
from agui_container.ports import (
    CallRules,
    Permission,
    PolicyDecision,
    Previewing,
    Resumable,
    RunContext,
    StrictlyChecked,
    Suspension,
    Tool,
    ToolContent,
    ToolError,
    ToolSuspension,
    interrupts_of,
)
from agui_container.protocol.encoder import encode, encode_whole
from agui_container.protocol.errors import IllegalEvent
from agui_container.protocol.strict_json import parse_finite_json, whole_text
from agui_container.runtime.log_values import format_fields
from agui_container.telemetry import ToolCall

T = TypeVar("T")

CallOutcome = ToolResult | Suspension
"""The result of a call, or the suspension of a call that needs answers from people."""

UNCHECKED_ASCII = 1_000_000
"""ASCII texts up to this many characters are not test-encoded: JSON needs at most six bytes for each character."""

DECLINED = "Error: the user did not want this call."

NOT_SENDABLE = "Error: the tool's result cannot be sent."


def by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Return tools by their names. Of several with one name, the last counts."""
    return {tool.spec.name: tool for tool in tools}


class Toolbox(Struct, frozen=True):
    """The tools of one run.

    Attributes:
        server: server tools by name.
        client: descriptions of client tools by name.
        rules: decide for each tool name if it may run, needs approval or is denied.
        is_complete: False while a tool source is unavailable.
        monotonic: monotonic clock in seconds, by which calls are timed.
    """

    server: Mapping[str, Tool]
    client: Mapping[str, ToolSpec]
    rules: CallRules
    is_complete: bool
    monotonic: Callable[[], float]

    @classmethod
    def build(
        cls,
        server: Mapping[str, Tool],
        offered: Sequence[ToolSpec],
        rules: CallRules,
        *,
        is_complete: bool = True,
        monotonic: Callable[[], float],
    ) -> "Toolbox":
        """Build a toolbox of the server's tools, by name, and the tools that a client offers."""
        client = {spec.name: spec for spec in offered if spec.name not in server}
        return cls(server, client, rules, is_complete, monotonic)

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """Descriptions of all tools for the model, server tools first."""
        return [*(tool.spec for tool in self.server.values()), *self.client.values()]

    def split_calls(self, calls: Sequence[ModelToolCall]) -> tuple[list[str], list[ModelToolCall]]:
        """Split calls into the ids of the client's calls and the calls that the server answers."""
        client_ids = {call.id: None for call in calls if self.is_client_call(call)}
        return list(client_ids), [call for call in calls if call.id not in client_ids]

    def is_client_call(self, call: ModelToolCall) -> bool:
        """Return True if the client runs this call. The server answers a call that cannot run."""
        return call.complete and call.name in self.client and is_object(call.arguments)

    def is_unavailable(self, call: ModelToolCall) -> bool:
        """Return True if the tool is missing and may belong to a source that is unavailable now."""
        return call.name not in self.server and not self.is_complete

    def required_approval(self, call: ModelToolCall) -> PolicyDecision | None:
        """Return the policy decision if the call needs an approval before it runs, else None."""
        decision = self.rules.decide(call.name)
        if self.rules.asks_always:
            return decision
        if self.denial(call) is not None or decision.permission is not Permission.ASK or not is_object(call.arguments):
            return None
        return decision

    def denial(self, call: ModelToolCall) -> str | None:
        """Return the error text for a call that must not run, or None if it may run."""
        if not call.complete:
            return "Error: the answer was cut off before this call was complete."
        if call.name not in self.server:
            error = argument_error(call) if call.name in self.client else None
            return error or f"Error: there is no tool named '{call.name}'."
        decision = self.rules.decide(call.name)
        if decision.permission is Permission.DENY:
            return f"Error: this tool is not allowed{f': {decision.reason}' if decision.reason else '.'}"
        return None

    async def preview(self, call: ModelToolCall, ctx: RunContext) -> str | None:
        """Return the tool's description of the effect of a call, or None if it has no preview or the preview failed."""
        tool = self.server.get(call.name)
        if not isinstance(tool, Previewing) or not is_object(call.arguments):
            return None
        try:
            return await tool.preview(arguments_of(call), replace(ctx, tool_call_id=call.id))
        except Exception as error:
            exc_info = error
            ctx.logger.error(  # noqa: TRY400 - only the trace of user code
                "tool preview failed %s", format_fields({"tool": call.name, "call": call.id}), exc_info=exc_info
            )
            return None

    async def details(self, call: ModelToolCall, ctx: RunContext) -> Mapping[str, object]:
        """Return the preview of a call and the JSON Schema of its arguments, each None if there is none."""
        tool = self.server.get(call.name)
        return {"preview": await self.preview(call, ctx), "parameters": tool.spec.parameters if tool else None}

    async def run_all(self, calls: Sequence[ModelToolCall], ctx: RunContext) -> Sequence[CallOutcome]:
        """Run the calls concurrently in the call slots of the run. Return the outcomes in the order of the calls."""
        if len(calls) == 1:
            return [await self.run_one(calls[0], ctx)]
        return await run_side_by_side([partial(self.run_one, call, ctx) for call in calls], ctx)

    async def run_one(self, call: ModelToolCall, ctx: RunContext, *, is_edited: bool = False) -> CallOutcome:
        """Run one call. A failure becomes its result. Only the cancellation of the run is raised.

        ``is_edited`` is True if a person has written the arguments. They are checked strictly then.
        """
        denial = self.denial(call)
        if denial is not None:
            return failed_result(denial)

        async def run(ctx: RunContext) -> ToolContent:
            tool, arguments = self.server[call.name], arguments_of(call)
            if is_edited and isinstance(tool, StrictlyChecked):
                tool.check_strictly(arguments)
            return await tool.call(arguments, ctx)

        return await run_tool(run, call, ctx, self.monotonic)

    async def resume(
        self, call: ModelToolCall, suspension: Suspension, entries: Sequence[ResumeEntry], ctx: RunContext
    ) -> CallOutcome:
        """Resume a suspended call with its answers. Failures are handled as in ``run_one``.

        A tool that cannot be resumed has only asked a question, so it is called again.
        """
        tool = self.server.get(call.name)
        if tool is None:
            return failed_result(f"Error: there is no tool named '{call.name}' any more.")
        if not isinstance(tool, Resumable) or not suspension.subagent_run_id:
            is_declined = any(entry.status == "cancelled" for entry in entries)
            return failed_result(DECLINED) if is_declined else await self.run_one(call, ctx)

        async def run(ctx: RunContext) -> ToolContent:
            return await tool.resume(suspension, entries, ctx)

        return await run_tool(run, call, ctx, self.monotonic)


async def run_side_by_side(calls: Sequence[Callable[[], Awaitable[T]]], ctx: RunContext) -> list[T]:
    """Run calls that do not raise concurrently in the call slots of the run.

    Each call yields to other runs before it starts. Return the results in the order of the calls.
    """

    async def run(call: Callable[[], Awaitable[T]]) -> T:
        await ctx.yield_turn()
        return await call()

    return await ctx.call_slots.run([partial(run, call) for call in calls])


async def iterate_side_by_side(calls: Sequence[Callable[[], Awaitable[T]]], ctx: RunContext) -> AsyncGenerator[T, None]:
    """Run calls like ``run_side_by_side``. Yield each result as soon as it and those before it are there."""
    if not calls:
        return
    ended = [asyncio.get_running_loop().create_future() for _ in calls]

    async def run(call: Callable[[], Awaitable[T]], result: "asyncio.Future[T]") -> None:
        result.set_result(await call())

    work = asyncio.create_task(run_side_by_side([partial(run, *each) for each in zip(calls, ended, strict=True)], ctx))
    try:
        for result in ended:
            await asyncio.wait((result, work), return_when=asyncio.FIRST_COMPLETED)
            if not result.done():
                break
            yield result.result()
        await work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def run_tool(
    run: Callable[[RunContext], Awaitable[ToolContent]],
    call: ModelToolCall,
    ctx: RunContext,
    monotonic: Callable[[], float],
) -> CallOutcome:
    """Run a tool in a telemetry span. Return an outcome that can be encoded, with the duration of the call."""
    started_at = monotonic()
    with ToolCall(call.name, call.id, call.arguments, ctx) as span:
        outcome = await _run_in_span(run, call, ctx, span)
        seconds = monotonic() - started_at
        try:
            outcome = _check_encodable(outcome, call, ctx)
        except (IllegalEvent, ValidationError) as error:
            span.record_error(error)
            ctx.logger.warning(
                "tool result cannot be encoded %s", format_fields({"tool": call.name, "call": call.id, "error": error})
            )
            outcome = failed_result(NOT_SENDABLE)
        if isinstance(outcome, ToolResult):
            span.record_result(outcome.content)
            outcome = outcome.with_duration(seconds)
    return outcome


def _check_encodable(outcome: CallOutcome, call: ModelToolCall, ctx: RunContext) -> CallOutcome:
    """Return the outcome with its content in AG-UI's own types, after encoding the events that will carry it.

    The ids used here are at least as long as those of the real events.

    Raises:
        IllegalEvent: an event cannot be encoded.
        ValidationError: the content has no type of AG-UI.
    """
    if isinstance(outcome, Suspension):
        interrupted = RunFinishedInterruptOutcome(interrupts=list(outcome.interrupts))
        asked, _ = encode_whole(RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=interrupted))
        said, _ = encode_whole(MessagesSnapshotEvent(messages=list(outcome.messages)))  # stored as JSON
        if isinstance(asked.outcome, RunFinishedInterruptOutcome):
            return Suspension(asked.outcome.interrupts, outcome.subagent_run_id, said.messages)
        return outcome
    outcome = _with_repaired_text(outcome, call, ctx)
    text = outcome.content
    if isinstance(text, str) and text.isascii() and len(text) <= UNCHECKED_ASCII:
        return outcome
    event = result_event(outcome.to_message(f"result-{call.id}", call.id))
    encode(event.model_copy(update={"subagent_run_id": ctx.subagent_run_id}))
    return structs.replace(outcome, content=event.content)


def _with_repaired_text(result: ToolResult, call: ModelToolCall, ctx: RunContext) -> ToolResult:
    """Return the result with U+FFFD in place of halves of surrogate pairs, which UTF-8 cannot encode."""
    content = result.content
    if isinstance(content, str):
        repaired: ToolContent = whole_text(content)
    elif isinstance(content, list):
        repaired = [
            part.model_copy(update={"text": whole_text(part.text)}) if is_text(part) else part for part in content
        ]
    else:
        return result
    if repaired == content:
        return result
    ctx.logger.warning(
        "halves of surrogate pairs replaced in tool result %s", format_fields({"tool": call.name, "call": call.id})
    )
    return structs.replace(result, content=repaired)


def is_text(part: object) -> TypeGuard[TextPart]:
    """Return True for a text part that has a text. Tools may return parts that were never validated."""
    return isinstance(part, TextPart) and isinstance(part.text, str)


async def _run_in_span(
    run: Callable[[RunContext], Awaitable[ToolContent]], call: ModelToolCall, ctx: RunContext, span: ToolCall
) -> CallOutcome:
    """Run a tool. Convert exceptions to failed results and record them in the span."""
    try:
        return ToolResult(await run(replace(ctx, tool_call_id=call.id)))
    except ToolSuspension as suspended:
        return suspended.suspension
    except ToolError as error:
        span.record_error(error)
        return failed_result(f"Error: {error}")
    except TimeoutError as error:
        span.record_error(error)
        ctx.logger.warning("tool timed out %s", format_fields({"tool": call.name, "call": call.id}), exc_info=error)
        return failed_result("Error: the tool timed out.")
    except BaseException as error:
        if interrupts := interrupts_of(error):
            own = [each.model_copy(update={"tool_call_id": call.id}) for each in interrupts]
            return Suspension(own, "", ())
        if not is_failure(error):
            raise
        span.record_error(error)
        ctx.logger.error(  # noqa: TRY400 - only the trace of user code
            "tool failed %s", format_fields({"tool": call.name, "call": call.id}), exc_info=error
        )
        return failed_result("Error: the tool failed.")


def arguments_of(call: ModelToolCall) -> Mapping[str, object]:
    """Parse the arguments of a call. An empty text, which models send for a call without arguments, is an empty object.

    Raises:
        ToolError: the text is not a JSON object.
    """
    try:
        value = parse_finite_json(call.arguments or "{}")
    except ValueError as error:
        raise ToolError("the arguments are not valid JSON.") from error
    if not isinstance(value, dict):
        raise ToolError("the arguments are not a JSON object.")
    return value


def argument_error(call: ModelToolCall) -> str | None:
    """Return the error text for a call whose arguments are not a JSON object, else None."""
    try:
        arguments_of(call)
    except ToolError as error:
        return f"Error: {error}"
    return None


def is_object(arguments: str) -> bool:
    """Return True if the text is a JSON object, so that the call can run."""
    return argument_error(ModelToolCall("", "", arguments)) is None


def is_failure(error: BaseException) -> bool:
    """Return True if the exception is a failure of the tool, False if it ends the run.

    ``SystemExit`` and ``KeyboardInterrupt`` count as failures because a tool must not end the server. So does a
    ``CancelledError`` while the current task is not being cancelled: the tool awaited a cancelled task.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() == 0
    return not isinstance(error, GeneratorExit)
