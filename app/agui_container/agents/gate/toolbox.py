"""The tools of one run, the server's and the client's, the decision on each call, and its execution.

Rules:
- A server tool takes precedence over a client tool of the same name. Of two server tools with one name the first one is
  used, and fixed tools come before those of sources.
- A source that fails costs the run only its own tools. The client is told by CUSTOM ``tools.unavailable``, the model by
  the system text.
- Every call gets a result that can be encoded, even if its tool fails. Only the texts of ``ToolError`` reach clients
  and models. Other exceptions go to the log.
- A call is recorded as started when its tool begins.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ag_ui import core as ag
from ag_ui.core import BaseEvent
from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from agui_container.agents.gate.calls import (
    CallNote,
    ModelToolCall,
    ToolResult,
    failed_result,
    parse_arguments,
    result_event,
)
from agui_container.log_values import format_fields
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
    ToolSource,
    ToolSuspension,
    interrupts_of,
)
from agui_container.ports.notices import TOOLS_UNAVAILABLE
from agui_container.protocol.encoder import encode_whole
from agui_container.telemetry.spans import ToolCall
from agui_core.expander import IllegalEvent
from agui_core.transcript import DURATION

DECLINED = "Error: the user did not want this call."
NOT_SENDABLE = "Error: the tool's result cannot be sent."

UNCHECKED_ASCII = 1_000_000
"""ASCII texts up to this many characters are not test-encoded: JSON needs at most six bytes for each character."""


class Toolbox(Struct, frozen=True):
    """The tools of one run by name, and the rules for the server's.

    Attributes:
        monotonic: monotonic clock in seconds, by which calls are timed.
        unavailable: why a source has no tools, by the source's name.
        notices: events that report the tools of sources that cannot be used.
    """

    server: Mapping[str, Tool]
    client: Mapping[str, ag.Tool]
    rules: CallRules
    monotonic: Callable[[], float]
    unavailable: Mapping[str, str] = {}
    notices: Sequence[BaseEvent] = ()

    @property
    def specs(self) -> Sequence[ag.Tool]:
        return [*(tool.spec for tool in self.server.values()), *self.client.values()]

    def with_client(self, offered: Sequence[ag.Tool], ctx: RunContext) -> "Toolbox":
        """Return the toolbox with the tools that the client offers in place of those that it has offered before."""
        if hidden := sorted({spec.name for spec in offered if spec.name in self.server}):
            fields = format_fields({"tools": ", ".join(hidden)})
            ctx.logger.info("client tools hidden by server tools of the same names %s", fields)
        return replace(self, client={spec.name: spec for spec in offered if spec.name not in self.server})

    def split_calls(self, calls: Sequence[ModelToolCall]) -> tuple[list[str], list[ModelToolCall]]:
        """Return the ids of the client's calls, and the other calls. The server answers a client's that cannot run."""
        client_ids = {call.id: None for call in calls if call.name in self.client and call_error(call) is None}
        return list(client_ids), [call for call in calls if call.id not in client_ids]

    def is_unavailable(self, call: ModelToolCall) -> bool:
        """Return True if the tool is missing and may belong to a source that is unavailable now."""
        return call.name not in self.server and bool(self.unavailable)

    def decide(self, call: ModelToolCall, *, is_approved: bool = False) -> PolicyDecision:
        """Decide if a call may run, needs an approval, or must not run. The reason of a denial is its result."""
        decision = self.rules.decide(call.name)
        if self.rules.asks_always and not is_approved:
            return replace(decision, permission=Permission.ASK)
        error = call_error(call)
        if error is None and call.name not in self.server:
            error = f"Error: there is no tool named '{call.name}'."
        if error is None and decision.permission is Permission.DENY:
            error = f"Error: this tool is not allowed{f': {decision.reason}' if decision.reason else '.'}"
        if error is not None:
            return PolicyDecision(Permission.DENY, error)
        return replace(decision, permission=Permission.ALLOW) if is_approved else decision

    async def details(self, call: ModelToolCall, ctx: RunContext) -> Mapping[str, object]:
        """Return the preview of a call and the JSON Schema of its arguments, each None if there is none."""
        tool, preview = self.server.get(call.name), None
        if isinstance(tool, Previewing) and call_error(call) is None:
            try:
                preview = await tool.preview(parse_arguments(call.arguments), replace(ctx, tool_call_id=call.id))
            except Exception as error:
                ctx.logger.error("tool preview failed %s", call_fields(call), exc_info=error)  # noqa: TRY400 - only the trace of user code
        return {"preview": preview, "parameters": tool.spec.parameters if tool else None}

    async def run(self, note: CallNote, entries: Sequence[ag.ResumeEntry], ctx: RunContext) -> ToolResult | Suspension:
        """Run a call that is allowed or approved, or resume a suspended one with its answers. Raise only cancellations.

        A suspended call that cannot be resumed has only asked a question, so it is made again.
        """
        call, tool = note.call, self.server.get(note.call.name)
        if not (note.is_resumable and isinstance(tool, Resumable)):
            if any(entry.status == "cancelled" for entry in entries):
                return failed_result(DECLINED)
            decision = self.decide(call, is_approved=True)
            if decision.permission is Permission.DENY:
                return failed_result(str(decision.reason))
        started_at = self.monotonic()
        with ToolCall(call.name, call.id, call.arguments, ctx) as span:
            outcome = await _run(self.server[call.name], note, entries, replace(ctx, tool_call_id=call.id), span)
            seconds = self.monotonic() - started_at
            try:
                outcome = _encodable(outcome, call, ctx)
            except (IllegalEvent, ValidationError) as error:
                span.record_error(error)
                ctx.logger.warning("tool result cannot be encoded %s", call_fields(call, error=error))
                outcome = failed_result(NOT_SENDABLE)
            if isinstance(outcome, Suspension):
                return outcome
            span.record_result(outcome.content)
            return outcome.marked(DURATION, round(seconds * 1000))


def call_error(call: ModelToolCall) -> str | None:
    """Return the error of a call that no tool can take, whatever its name, or None."""
    if not call.complete:
        return "Error: the answer was cut off before this call was complete."
    try:
        parse_arguments(call.arguments)
    except ToolError as error:
        return f"Error: {error}"
    return None


def call_fields(call: ModelToolCall, **others: object) -> str:
    return format_fields({"tool": call.name, "call": call.id, **others})


async def gather_tools(
    tools: Sequence[Tool],
    sources: Sequence[ToolSource],
    offered: Sequence[ag.Tool],
    monotonic: Callable[[], float],
    ctx: RunContext,
) -> Toolbox:
    """Return the fixed tools, those that each source lists now, and those that the client offers."""
    listed = await asyncio.gather(*[_list_tools(source, ctx) for source in sources])
    server: dict[str, Tool] = {}
    for tool in tools:
        server.setdefault(tool.spec.name, tool)
    notices: list[BaseEvent] = []
    for source, found in zip(sources, listed, strict=True):
        problem = found
        if not isinstance(found, str):
            taken = sorted(tool.spec.name for tool in found if tool.spec.name in server)
            problem = f"Left out, because other tools have these names: {', '.join(taken)}." if taken else ""
            for tool in found:
                server.setdefault(tool.spec.name, tool)
        if problem:
            ctx.logger.warning("tools unavailable %s", format_fields({"source": source.name, "error": problem}))
            notices.append(ag.CustomEvent(name=TOOLS_UNAVAILABLE, value={"source": source.name, "message": problem}))
    unavailable = {source.name: found for source, found in zip(sources, listed, strict=True) if isinstance(found, str)}
    return Toolbox(server, {}, ctx.call_rules, monotonic, unavailable, notices).with_client(offered, ctx)


async def _list_tools(source: ToolSource, ctx: RunContext) -> Sequence[Tool] | str:
    """Return the tools of a source, or the reason for which it has none."""
    try:
        return await source.tools(ctx)
    except ToolError as error:
        return str(error)
    except BaseException as error:
        if not is_failure(error):
            raise
        ctx.logger.exception("listing tools failed %s", format_fields({"source": source.name}))
        return "Its tools could not be listed."


# --- execution --------------------------------------------------------------------------------------------------------


async def _run(
    tool: Tool, note: CallNote, entries: Sequence[ag.ResumeEntry], ctx: RunContext, span: ToolCall
) -> ToolResult | Suspension:
    """Convert exceptions of the tool to failed results, and record them in the span."""
    try:
        return ToolResult(await _content(tool, note, entries, ctx))
    except ToolSuspension as suspended:
        return suspended.suspension
    except ToolError as error:
        span.record_error(error)
        return failed_result(f"Error: {error}")
    except BaseException as error:
        if interrupts := interrupts_of(error):
            return Suspension([each.model_copy(update={"tool_call_id": note.id}) for each in interrupts])
        if not is_failure(error):
            raise
        span.record_error(error)
        failure = "tool timed out" if isinstance(error, TimeoutError) else "tool failed"
        ctx.logger.error("%s %s", failure, call_fields(note.call), exc_info=error)  # noqa: TRY400 - only the trace of user code
        return failed_result(f"Error: the {failure}.")


async def _content(tool: Tool, note: CallNote, entries: Sequence[ag.ResumeEntry], ctx: RunContext) -> ToolContent:
    if note.is_resumable and isinstance(tool, Resumable) and note.suspension is not None:
        ctx.turn.started_calls.add(note.id)
        return await tool.resume(note.suspension, entries, ctx)
    arguments = parse_arguments(note.call.arguments)
    if note.answer is not None and note.answer.edited_args is not None and isinstance(tool, StrictlyChecked):
        tool.check_strictly(arguments)  # a person has written them
    ctx.turn.started_calls.add(note.id)
    return await tool.call(arguments, ctx)


def _encodable(outcome: ToolResult | Suspension, call: ModelToolCall, ctx: RunContext) -> ToolResult | Suspension:
    """Return the outcome as the events that will carry it have it. Their ids are not longer than those used here.

    Raises ``IllegalEvent`` or ``ValidationError`` if there is no such event.
    """
    if isinstance(outcome, Suspension):
        interrupted = ag.RunFinishedInterruptOutcome(interrupts=list(outcome.interrupts))
        encode_whole(ag.RunFinishedEvent(thread_id=ctx.thread_id, run_id=ctx.run_id, outcome=interrupted))
        encode_whole(ag.MessagesSnapshotEvent(messages=list(outcome.messages)))  # stored as JSON
        return outcome
    content = outcome.content
    if isinstance(content, str) and content.isascii() and len(content) <= UNCHECKED_ASCII:
        return outcome
    event = result_event(outcome.to_message(f"result-{call.id}", call.id))
    sent, _ = encode_whole(event.model_copy(update={"subagent_run_id": ctx.subagent_run_id}))
    if sent.content != content:
        ctx.logger.warning("halves of surrogate pairs replaced in tool result %s", call_fields(call))
    return ToolResult(sent.content, outcome.metadata)


def is_failure(error: BaseException) -> bool:
    """Return True if the exception is a failure of the tool, False if it ends the run.

    ``SystemExit`` and ``KeyboardInterrupt`` count as failures because a tool must not end the server. So does a
    ``CancelledError`` while the current task is not being cancelled: the tool awaited a cancelled task.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or task.cancelling() == 0
    return not isinstance(error, GeneratorExit)
