"""Results for calls that a history leaves unanswered.

A framework would run such a call, or send a history that models reject.

Rules:
- An unanswered call was cut off or invented by a client. It gets a placeholder result and does not run.
- Calls of client tools in the last turn stay open until the next message.
- Results directly follow their calls. A late result replaces the placeholder. A result that a snapshot has moved is
  moved back.
- Models may use a call id again. A result belongs to the last call with its id before it. If that call has a result,
  or there is none, the result belongs to the next call with its id.

Source: AG-UI spec 1.1, events/tool-calls#frontend-tools.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

from ag_ui.core import AssistantMessage, Message, ToolCall, ToolMessage
from msgspec import Struct

from agui_container.agents.assistant.history import NO_RESULT


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
