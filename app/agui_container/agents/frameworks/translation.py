"""Filters for the inputs and events of all frameworks, and results for the calls that a history leaves unanswered.

Rules:

- Exception texts stay in the log. A framework's RUN_ERROR contains one, and so does ``hook_error`` of Strands.
- A framework's thread id combines owner and thread, because frameworks do not know owners.
- An answer to an unknown interrupt is ignored with a warning, and never passed to another interrupt.
- An unanswered call was cut off or invented by a client. A framework would run such a call, or send a history that
  models reject. The call gets a placeholder result and does not run.
- Calls of client tools in the last turn stay open until the next message.
- Results directly follow their calls. A late result replaces the placeholder. A result that a snapshot has moved is
  moved back.
- Models may use a call id again. A result belongs to the last call with its id before it. If that call has a result,
  or there is none, the result belongs to the next call with its id.

Sources: AG-UI spec 1.1, basic/patterns/interrupt-resume and events/tool-calls#frontend-tools.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from copy import deepcopy
from urllib.parse import quote

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    Message,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    ToolCall,
    ToolMessage,
)
from msgspec import Struct

from agui_container.agents.approvals.resume import is_awaiting_client, warn_of_unknown
from agui_container.ports import Item, RunContext
from agui_container.protocol.conversation.stored_parts import NO_RESULT
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.aclosing import maybe_aclosing
from agui_container.runtime.log_values import format_fields

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
    ctx.logger.warning("framework hook failed %s", format_fields({"run": ctx.run_id, "value": event.value}))
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


class OpenCall(Struct, eq=False):
    """A call at its position in a history, and its result.

    Attributes:
        call: the call.
        placeholder_id: message id of the placeholder result.
        result: the result, once it was found; it may be a placeholder.
    """

    call: ToolCall
    placeholder_id: str
    result: ToolMessage | None = None

    def accept_result(self, result: ToolMessage) -> bool:
        """Take the first result that is not a placeholder. Return True if ``result`` was taken.

        A result that replaces a placeholder gets the placeholder's message id.
        """
        if self.result is None:
            self.result = result
            return True
        if is_placeholder(self.result) and not is_placeholder(result):
            self.result = result.model_copy(update={"id": self.result.id})
            return True
        return False

    def result_message(self, known_ids: Collection[str]) -> ToolMessage:
        """Return the result, or a placeholder. ``known_ids`` are ids of the messages that the framework has.

        If the framework knows the placeholder, the result has its id, so that the framework replaces it.
        """
        if self.result is None:
            # The error text is in the content as well, because frameworks drop ``error``.
            return ToolMessage(id=self.placeholder_id, tool_call_id=self.call.id, content=NO_RESULT, error=NO_RESULT)
        if self.placeholder_id in known_ids:
            return self.result.model_copy(update={"id": self.placeholder_id})
        return self.result


def with_results(
    messages: Sequence[Message], client_tools: Collection[str], known_ids: Collection[str] = ()
) -> list[Message]:
    """Return the messages with one result for every call, except open calls of client tools in the last turn.

    Args:
        messages: a history.
        client_tools: names of the client's tools.
        known_ids: ids of the messages that the framework has.
    """
    complete: list[Message] = []
    waiting: list[OpenCall] = []
    for message, calls in zip(messages, calls_by_message(messages), strict=True):
        if not continues_turn(message):
            complete.extend(call.result_message(known_ids) for call in waiting)
            waiting.clear()
        if not isinstance(message, ToolMessage):
            complete.append(message)
            waiting.extend(calls)
            continue
        for call in calls:
            if call in waiting:
                waiting.remove(call)
                complete.append(call.result_message(known_ids))
    server_calls = [call for call in waiting if call.result or call.call.function.name not in client_tools]
    return [*complete, *(call.result_message(known_ids) for call in server_calls)]


def calls_by_message(messages: Sequence[Message]) -> list[list[OpenCall]]:
    """Return for each message the calls that it makes, or the call that it answers, if any."""
    made: defaultdict[str, list[OpenCall]] = defaultdict(list)
    unmatched: defaultdict[str, list[ToolMessage]] = defaultdict(list)
    by_message: list[list[OpenCall]] = []
    for message in messages:
        calls = []
        for call in calls_of(message):
            suffix = f"-{len(made[call.id]) + 1}" if made[call.id] else ""
            early_result = unmatched[call.id].pop(0) if unmatched[call.id] else None
            open_call = OpenCall(call, f"unanswered-{call.id}{suffix}", early_result)
            made[call.id].append(open_call)
            calls.append(open_call)
        if isinstance(message, ToolMessage):
            calls = [open_call for open_call in made[message.tool_call_id][-1:] if open_call.accept_result(message)]
            unmatched[message.tool_call_id] += [] if calls else [message]
        by_message.append(calls)
    return by_message


def continues_turn(message: Message) -> bool:
    """Return True if a message belongs to the same turn as the one before it: it makes calls or is a result."""
    return isinstance(message, ToolMessage) or bool(calls_of(message))


def calls_of(message: Message) -> Sequence[ToolCall]:
    """Return the calls that a message makes."""
    return (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ()


def is_placeholder(result: ToolMessage) -> bool:
    """Return True for a placeholder result. It is compared by content, because frameworks may change its id."""
    return result.content == NO_RESULT
