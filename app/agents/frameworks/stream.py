"""What every framework's events and inputs go through.

Rule: a framework's RUN_ERROR holds the text of an exception, and so does Strands' ``hook_error``; neither leaves the
server. Threads are told apart by owner and thread, as the engine does: frameworks know a thread id only.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from copy import deepcopy
from urllib.parse import quote

from ag_ui.core import BaseEvent, CustomEvent, RunAgentInput, RunErrorEvent

from app.agents.frameworks.unanswered import answered
from app.agents.resume import half_answered
from app.closing import closing
from app.core.errors import AppError, Code
from app.ports import Item, RunContext

HOOK_ERROR = "hook_error"

REFUSALS = {
    "THREAD_BUSY": (Code.THREAD_BUSY, "Another run is using this agent. Try again later."),
    "PENDING_INTERRUPTS": (Code.VALIDATION_ERROR, "The thread waits for answers: send resume."),
    "UNKNOWN_INTERRUPT_ID": (Code.VALIDATION_ERROR, "The thread does not wait for this answer."),
    "PARTIAL_RESUME": (Code.VALIDATION_ERROR, "The thread waits for more answers than were sent."),
    "INTERRUPT_EXPIRED": (Code.VALIDATION_ERROR, "The answer came too late."),
    "INTERRUPT_RESUME_ERROR": (Code.VALIDATION_ERROR, "The answers do not fit what the thread waits for."),
    "INVALID_PAYLOAD": (Code.VALIDATION_ERROR, "The answer does not have the form that was asked for."),
}
"""The codes of the frameworks' RUN_ERROR that a client can act on (ag_ui_strands), in our words."""


class FrameworkFailed(Exception):
    """A framework ended its run with RUN_ERROR. The text is for the log."""


async def checked(events: AsyncIterator[BaseEvent], ctx: RunContext) -> AsyncGenerator[Item, None]:
    """Hand a framework's events through, and close it.

    Raises:
        AppError: it refused the request in a way that the client can do something about.
        FrameworkFailed: it failed.
    """
    async with closing(events) as stream:
        async for event in stream:
            if isinstance(event, RunErrorEvent):
                ctx.usage.extend(event.usage or ())
                raise _failure(event)
            yield _without_text(event, ctx)


def own(input: RunAgentInput, ctx: RunContext, kept: Collection[str] = ()) -> RunAgentInput:
    """The input with a thread id that no other owner has, a state that the framework may change, and no open calls.

    Where interrupts are answered, calls stay open: they wait for these answers. ``kept`` are the ids of the messages
    that the framework has.
    """
    offered = {tool.name for tool in input.tools or ()}
    messages = input.messages if input.resume else answered(input.messages, offered, kept)
    thread = thread_of(ctx.caller.owner, input.thread_id)
    return input.model_copy(update={"thread_id": thread, "state": deepcopy(input.state), "messages": messages})


def awaits_client(input: RunAgentInput) -> bool:
    """Whether the client has sent some of the results of a turn: the model is asked when it has them all."""
    return not input.resume and half_answered(input.messages, {tool.name for tool in input.tools or ()})


def thread_of(owner: str, thread_id: str) -> str:
    """What a framework knows a thread by."""
    return f"{quote(owner, safe='')}:{thread_id}"


def _failure(event: RunErrorEvent) -> Exception:
    refusal = REFUSALS.get(event.code or "")
    return AppError(*refusal) if refusal else FrameworkFailed(f"{event.code or 'RUN_ERROR'}: {event.message}")


def _without_text(event: BaseEvent, ctx: RunContext) -> BaseEvent:
    if not (isinstance(event, CustomEvent) and event.name == HOOK_ERROR and isinstance(event.value, dict)):
        return event
    ctx.logger.warning("a hook failed: %s", event.value)
    return event.model_copy(update={"value": {**event.value, "error": "The hook failed; the server's log has why."}})
