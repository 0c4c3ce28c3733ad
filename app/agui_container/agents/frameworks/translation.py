"""Filters for the inputs and events of all frameworks, and results for the calls that a history leaves unanswered.

Rules:

- Exception texts stay in the log. A framework's RUN_ERROR contains one, and so does ``hook_error`` of Strands
  (ag-ui-strands 1.0).
- A framework's thread id is ``ctx.thread_key``, because frameworks do not know owners.
- An answer to an unknown interrupt is ignored with a warning, and never passed to another interrupt.
- An unanswered call was cut off or invented by a client. A framework would run such a call, or send a history that
  models reject. The call gets a placeholder result and does not run.
- Calls of client tools in the last turn stay open until the next message.
- Results directly follow the message with their calls. The last result of a call counts, under the message id of the
  first.

Sources: AG-UI spec 1.1, basic/patterns/interrupt-resume and events/tool-calls#frontend-tools.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from copy import deepcopy

from ag_ui.core import (
    BaseEvent,
    CustomEvent,
    Message,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    ToolMessage,
)

from agui_container.agents.gate.approval import answers_by_interrupt, warn_of_unknown
from agui_container.log_values import format_fields
from agui_container.ports import RunContext
from agui_container.ports.agent import maybe_aclosing
from agui_container.ports.tool import for_models
from agui_container.protocol.errors import AppError, ErrorCode
from agui_core.turns import (
    NO_RESULT,
    IndexedCall,
    is_awaiting_client,
    open_calls,
    with_results,
)

HOOK_ERROR = "hook_error"

TOOL_FAILED = "The tool failed; the server's log has the cause."
"""Result of a failed call in place of the text of its exception."""

REFUSALS = {
    "THREAD_BUSY": (ErrorCode.THREAD_BUSY, "Another run is using this agent. Try again later."),
    "PENDING_INTERRUPTS": (ErrorCode.VALIDATION_ERROR, "The thread waits for answers: send resume."),
    "UNKNOWN_INTERRUPT_ID": (ErrorCode.VALIDATION_ERROR, "The thread does not wait for this answer."),
    "INTERRUPT_RESUME_REQUIRED": (ErrorCode.VALIDATION_ERROR, "The thread waits for answers: send resume."),
    "INTERRUPT_RESUME_INCOMPLETE": (
        ErrorCode.VALIDATION_ERROR,
        "The thread waits for more answers than were sent.",
    ),
    "PARTIAL_RESUME": (ErrorCode.VALIDATION_ERROR, "The thread waits for more answers than were sent."),
    "INTERRUPT_EXPIRED": (ErrorCode.VALIDATION_ERROR, "The answer came too late."),
    "INTERRUPT_RESUME_ERROR": (ErrorCode.VALIDATION_ERROR, "The answers do not fit what the thread waits for."),
    "INVALID_PAYLOAD": (ErrorCode.VALIDATION_ERROR, "The answer does not have the form that was asked for."),
}
"""Codes of RUN_ERROR (ag_ui_strands, ag_ui_adk) that a client can act on, with this server's code and message."""


class FrameworkError(Exception):
    """A framework's run ended with RUN_ERROR. The text is for the log, because it is that of an exception."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.message = message


async def check_events(events: AsyncIterator[BaseEvent], ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
    """Yield events without exception texts. Raises ``AppError`` for a code of ``REFUSALS``, else ``FrameworkError``."""
    async with maybe_aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, RunErrorEvent):
                ctx.usage.extend(event.usage or ())
                raise _failure(event)
            yield _without_error_text(event, ctx)


async def end_calls(events: AsyncIterator[BaseEvent]) -> AsyncGenerator[BaseEvent, None]:
    """End a call before another one under its id begins. ag-ui-langgraph ends it only before one under another id."""
    open_id = ""
    async with maybe_aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, ToolCallStartEvent):
                if event.tool_call_id == open_id:
                    yield ToolCallEndEvent(tool_call_id=open_id)
                open_id = event.tool_call_id
            elif isinstance(event, ToolCallEndEvent):
                open_id = ""
            yield event


def own_input(input: RunAgentInput, ctx: RunContext, known_ids: Collection[str] = ()) -> RunAgentInput:
    """Return the input with a thread id unique to its owner, a copy of the state, and a result for every call.

    If the input answers interrupts, calls stay open, because they wait for these answers. ``known_ids`` are the ids of
    the messages that the framework has.
    """
    client_tools = {tool.name for tool in input.tools or ()}
    messages = input.messages if input.resume else with_placeholders(input.messages, client_tools, known_ids)
    return input.model_copy(update={"thread_id": ctx.thread_key, "state": deepcopy(input.state), "messages": messages})


def awaits_client(input: RunAgentInput) -> bool:
    """Return True if the client has sent only some results of a turn. The model is called when it has sent all."""
    return not input.resume and is_awaiting_client(input.messages, {tool.name for tool in input.tools or ()})


def failed_tool(name: str, error: BaseException | None, ctx: RunContext) -> str:
    """Log the exception of a tool, and return the result of its call in place of the exception's text."""
    ctx.logger.warning("tool failed %s", format_fields({"run": ctx.run_id, "tool": name}), exc_info=error)
    return TOOL_FAILED


def result_text(message: ToolMessage) -> str:
    content = for_models(message.content)
    return content if isinstance(content, str) else json.dumps([part.model_dump() for part in content])


def _failure(event: RunErrorEvent) -> Exception:
    refusal = REFUSALS.get(event.code or "")
    return AppError(*refusal) if refusal else FrameworkError(event.code or "RUN_ERROR", event.message)


def _without_error_text(event: BaseEvent, ctx: RunContext) -> BaseEvent:
    if not (isinstance(event, CustomEvent) and event.name == HOOK_ERROR and isinstance(event.value, dict)):
        return event
    ctx.logger.warning("framework hook failed %s", format_fields({"run": ctx.run_id, "value": event.value}))
    return event.model_copy(update={"value": {**event.value, "error": "The hook failed; the server's log has why."}})


def filter_answers(entries: Sequence[ResumeEntry], waiting: Collection[str], ctx: RunContext) -> list[ResumeEntry]:
    """Return the entries for ``waiting``, and log the others. Raises ``AppError`` if an interrupt is answered twice."""
    warn_of_unknown([entry for entry in entries if entry.interrupt_id not in waiting], ctx)
    return [entry for _, entry in answers_by_interrupt(entries, waiting).values()]


def with_placeholders(
    messages: Sequence[Message], client_tools: Collection[str], known_ids: Collection[str] = ()
) -> list[Message]:
    """Return the messages with one result for every call, except open calls of client tools in the last turn."""
    waiting = [call for call in open_calls(messages) if call.function.name in client_tools]

    def result_of(call: IndexedCall) -> Sequence[ToolMessage]:
        return [] if any(call.call is each for each in waiting) else [result_or_placeholder(call, known_ids)]

    return with_results(messages, result_of)


def result_or_placeholder(call: IndexedCall, known_ids: Collection[str]) -> ToolMessage:
    """Return the last result or a placeholder, with the id that the framework knows, so that it is replaced."""
    id_ = f"unanswered-{call.call.id}{f'-{call.number}' if call.number > 1 else ''}"
    if call.result is None:
        # The error text is in the content as well, because frameworks drop ``error``.
        return ToolMessage(id=id_, tool_call_id=call.call.id, content=NO_RESULT, error=NO_RESULT)
    return call.result.model_copy(update={"id": id_ if id_ in known_ids else call.results[0].id})
