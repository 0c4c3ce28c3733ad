"""Filters for the inputs and events of all frameworks.

Rules:
- Exception texts stay in the log. A framework's RUN_ERROR contains one, and so does ``hook_error`` of Strands.
- A framework's thread id combines owner and thread, because frameworks do not know owners.
- An answer to an unknown interrupt is ignored with a warning, and never passed to another interrupt.

Source: AG-UI spec 1.1, basic/patterns/interrupt-resume.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from copy import deepcopy
from urllib.parse import quote

from ag_ui.core import BaseEvent, CustomEvent, ResumeEntry, RunAgentInput, RunErrorEvent

from agui_container.agents.assistant.approvals.resume import is_awaiting_client, warn_of_unknown
from agui_container.agents.frameworks.dangling_calls import with_results
from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.aclosing import maybe_aclosing

HOOK_ERROR = "hook_error"

REFUSALS = {
    "THREAD_BUSY": (ErrorCode.THREAD_BUSY, "Another run is using this agent. Try again later."),
    "PENDING_INTERRUPTS": (ErrorCode.VALIDATION_ERROR, "The thread waits for answers: send resume."),
    "UNKNOWN_INTERRUPT_ID": (ErrorCode.VALIDATION_ERROR, "The thread does not wait for this answer."),
    "PARTIAL_RESUME": (ErrorCode.VALIDATION_ERROR, "The thread waits for more answers than were sent."),
    "INTERRUPT_EXPIRED": (ErrorCode.VALIDATION_ERROR, "The answer came too late."),
    "INTERRUPT_RESUME_ERROR": (ErrorCode.VALIDATION_ERROR, "The answers do not fit what the thread waits for."),
    "INVALID_PAYLOAD": (ErrorCode.VALIDATION_ERROR, "The answer does not have the form that was asked for."),
}
"""Codes of a framework's RUN_ERROR (ag_ui_strands) that a client can act on, with this server's code and message."""


class FrameworkError(Exception):
    """A framework's run ended with RUN_ERROR. The text is for the log."""


async def check_events(events: AsyncIterator[BaseEvent], ctx: RunContext) -> AsyncGenerator[Item, None]:
    """Yield a framework's events without exception texts, and close the stream.

    Raises:
        AppError: the framework rejected the request with a code of ``REFUSALS``.
        FrameworkError: the framework failed.
    """
    async with maybe_aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, RunErrorEvent):
                ctx.usage.extend(event.usage or ())
                raise _failure(event)
            yield _without_error_text(event, ctx)


def own_input(input: RunAgentInput, ctx: RunContext, known_ids: Collection[str] = ()) -> RunAgentInput:
    """Return the input with a thread id unique to its owner, a copy of the state, and a result for every call.

    If the input answers interrupts, calls stay open, because they wait for these answers. ``known_ids`` are the ids of
    the messages that the framework has.
    """
    client_tools = {tool.name for tool in input.tools or ()}
    messages = input.messages if input.resume else with_results(input.messages, client_tools, known_ids)
    thread = thread_id_for(ctx.caller.owner, input.thread_id)
    return input.model_copy(update={"thread_id": thread, "state": deepcopy(input.state), "messages": messages})


def awaits_client(input: RunAgentInput) -> bool:
    """Return True if the client has sent only some results of a turn. The model is called when it has sent all."""
    return not input.resume and is_awaiting_client(input.messages, {tool.name for tool in input.tools or ()})


def thread_id_for(owner: str, thread_id: str) -> str:
    """Return the thread id that a framework gets: the quoted owner and the client's thread id."""
    return f"{quote(owner, safe='')}:{thread_id}"


def _failure(event: RunErrorEvent) -> Exception:
    refusal = REFUSALS.get(event.code or "")
    return AppError(*refusal) if refusal else FrameworkError(f"{event.code or 'RUN_ERROR'}: {event.message}")


def _without_error_text(event: BaseEvent, ctx: RunContext) -> BaseEvent:
    if not (isinstance(event, CustomEvent) and event.name == HOOK_ERROR and isinstance(event.value, dict)):
        return event
    ctx.logger.warning("framework hook failed run=%s value=%s", ctx.run_id, event.value)
    return event.model_copy(update={"value": {**event.value, "error": "The hook failed; the server's log has why."}})


def filter_answers(entries: Sequence[ResumeEntry], waiting: Collection[str], ctx: RunContext) -> list[ResumeEntry]:
    """Return the entries that name an interrupt in ``waiting``, and log a warning about the others.

    Raises:
        AppError: VALIDATION_ERROR, if an interrupt is answered twice.
    """
    warn_of_unknown(waiting, entries, ctx)
    by_interrupt: dict[str, ResumeEntry] = {}
    for index, entry in enumerate(entries):
        if entry.interrupt_id in by_interrupt:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"resume.{index}.interruptId: this interrupt is answered twice.")
        if entry.interrupt_id in waiting:
            by_interrupt[entry.interrupt_id] = entry
    return list(by_interrupt.values())
