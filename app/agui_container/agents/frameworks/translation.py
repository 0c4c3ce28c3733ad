"""What every framework's events and inputs go through.

Rule: a framework's RUN_ERROR holds the text of an exception, and so does Strands' ``hook_error``; neither leaves the
server. Threads are told apart by owner and thread, as the engine does: frameworks know a thread id only.

Answers to interrupts, before a framework sees them.

Rule: an answer to what nobody asked is left out with a warning, and never given to something else that waits. Source:
AG-UI spec 1.1, basic/patterns/interrupt-resume.
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
"""The codes of the frameworks' RUN_ERROR that a client can act on (ag_ui_strands), in our words."""


class FrameworkError(Exception):
    """A framework ended its run with RUN_ERROR. The text is for the log."""


async def check_events(events: AsyncIterator[BaseEvent], ctx: RunContext) -> AsyncGenerator[Item, None]:
    """Hand a framework's events through, and close it.

    Raises:
        AppError: it refused the request in a way that the client can do something about.
        FrameworkFailed: it failed.
    """
    async with maybe_aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, RunErrorEvent):
                ctx.usage.extend(event.usage or ())
                raise _failure(event)
            yield _without_text(event, ctx)


def own_input(input: RunAgentInput, ctx: RunContext, kept: Collection[str] = ()) -> RunAgentInput:
    """The input with a thread id that no other owner has, a state that the framework may change, and no open calls.

    Where interrupts are answered, calls stay open: they wait for these answers. ``kept`` are the ids of the messages
    that the framework has.
    """
    offered = {tool.name for tool in input.tools or ()}
    messages = input.messages if input.resume else with_results(input.messages, offered, kept)
    thread = thread_id_for(ctx.caller.owner, input.thread_id)
    return input.model_copy(update={"thread_id": thread, "state": deepcopy(input.state), "messages": messages})


def awaits_client(input: RunAgentInput) -> bool:
    """Whether the client has sent some of the results of a turn: the model is asked when it has them all."""
    return not input.resume and is_awaiting_client(input.messages, {tool.name for tool in input.tools or ()})


def thread_id_for(owner: str, thread_id: str) -> str:
    """What a framework knows a thread by."""
    return f"{quote(owner, safe='')}:{thread_id}"


def _failure(event: RunErrorEvent) -> Exception:
    refusal = REFUSALS.get(event.code or "")
    return AppError(*refusal) if refusal else FrameworkError(f"{event.code or 'RUN_ERROR'}: {event.message}")


def _without_text(event: BaseEvent, ctx: RunContext) -> BaseEvent:
    if not (isinstance(event, CustomEvent) and event.name == HOOK_ERROR and isinstance(event.value, dict)):
        return event
    ctx.logger.warning("a hook failed: %s", event.value)
    return event.model_copy(update={"value": {**event.value, "error": "The hook failed; the server's log has why."}})


def filter_answers(entries: Sequence[ResumeEntry], waiting: Collection[str], ctx: RunContext) -> list[ResumeEntry]:
    """The entries that name an interrupt that waits.

    Raises:
        AppError: VALIDATION_ERROR for two answers to one interrupt.
    """
    warn_of_unknown(waiting, entries, ctx)
    found: dict[str, ResumeEntry] = {}
    for at, entry in enumerate(entries):
        if entry.interrupt_id in found:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"resume.{at}.interruptId: this interrupt is answered twice.")
        if entry.interrupt_id in waiting:
            found[entry.interrupt_id] = entry
    return list(found.values())
