"""Filters for the inputs and events of all frameworks, and results for the calls that a history leaves unanswered.

Rules:

- Exception texts stay in the log. A framework's RUN_ERROR contains one, and so does ``hook_error`` of Strands.
- A framework's thread id combines owner and thread, because frameworks do not know owners.
- An answer to an unknown interrupt is ignored with a warning, and never passed to another interrupt.
- An unanswered call was cut off or invented by a client. A framework would run such a call, or send a history that
  models reject. The call gets a placeholder result and does not run.
- Calls of client tools in the last turn stay open until the next message.
- Results directly follow their calls. The last result of a call counts, under the message id of the first. A result
  that a snapshot has moved is moved back.
- Models may use a call id again. A result belongs to the last call with its id before it. If that call has another
  result, or there is none, and the next call with its id has no result, the result belongs to the next call.

Sources: AG-UI spec 1.1, basic/patterns/interrupt-resume and events/tool-calls#frontend-tools.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from copy import deepcopy
from itertools import pairwise
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
    """A call at its position in a history, and its results.

    Attributes:
        call: the call.
        placeholder_id: message id of the placeholder result.
        results: the results of the call, in order. Some may be placeholders.
    """

    call: ToolCall
    placeholder_id: str
    results: list[ToolMessage] = []

    def result_message(self, known_ids: Collection[str]) -> ToolMessage:
        """Return the last result, or a placeholder. ``known_ids`` are ids of the messages that the framework has.

        The result has the id of the first one, or of the placeholder that the framework knows, so that the framework
        replaces it.
        """
        if not self.results:
            # The error text is in the content as well, because frameworks drop ``error``.
            return ToolMessage(id=self.placeholder_id, tool_call_id=self.call.id, content=NO_RESULT, error=NO_RESULT)
        last = ([result for result in self.results if not is_placeholder(result)] or self.results)[-1]
        id_ = self.placeholder_id if self.placeholder_id in known_ids else self.results[0].id
        return last.model_copy(update={"id": id_})

    def surplus_results(self) -> list[ToolMessage]:
        """Remove and return the results after the first one that is not a placeholder."""
        first = next((at for at, result in enumerate(self.results) if not is_placeholder(result)), len(self.results))
        self.results, surplus = self.results[: first + 1], self.results[first + 1 :]
        return surplus


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
    server_calls = [call for call in waiting if call.results or call.call.function.name not in client_tools]
    return [*complete, *(call.result_message(known_ids) for call in server_calls)]


def with_last_results(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the last result of each call in the place of the first. Nothing else changes."""
    kept: list[Message] = []
    answered: set[OpenCall] = set()
    for message, calls in zip(messages, calls_by_message(messages), strict=True):
        if not isinstance(message, ToolMessage) or not calls:
            kept.append(message)
        elif calls[0] not in answered:
            answered.add(calls[0])
            kept.append(calls[0].result_message(()))
    return kept


def calls_by_message(messages: Sequence[Message]) -> list[list[OpenCall]]:
    """Return for each message the calls that it makes, or the call that it answers, if any."""
    made: defaultdict[str, list[OpenCall]] = defaultdict(list)
    early: defaultdict[str, list[ToolMessage]] = defaultdict(list)
    by_message: list[list[OpenCall]] = []
    for message in messages:
        calls = []
        for call in calls_of(message):
            suffix = f"-{len(made[call.id]) + 1}" if made[call.id] else ""
            open_call = OpenCall(call, f"unanswered-{call.id}{suffix}", early.pop(call.id, []))
            made[call.id].append(open_call)
            calls.append(open_call)
        if isinstance(message, ToolMessage):
            calls = made[message.tool_call_id][-1:]
            results = calls[0].results if calls else early[message.tool_call_id]
            results.append(message)
        by_message.append(calls)
    for same_id in made.values():
        for before, after in pairwise(same_id):
            after.results = after.results or before.surplus_results()
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
