"""Calls and their results, made to match: every call is answered once, right after it, and nothing else is answered.

The history comes from outside, so anything can be missing, double or out of place, and servers refuse all of that.
"""

from collections.abc import Mapping, Sequence

from ag_ui.core import AssistantMessage, Message, ToolCall, ToolMessage
from msgspec import Struct


class Exchange(Struct, frozen=True):
    """What an assistant said, and its calls with their results; None where a call was never answered."""

    message: AssistantMessage
    calls: Sequence[tuple[ToolCall, ToolMessage | None]]


def paired(messages: Sequence[Message]) -> list[Message | Exchange]:
    """The conversation with tool messages moved to their calls.

    Of several results of one call the first counts; results of unknown calls are left out, and so are calls that
    repeat an id within one message.
    """
    results = _results(messages)
    conversation: list[Message | Exchange] = []
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            calls = {call.id: call for call in reversed(message.tool_calls or ())}
            pairs = [(call, results.get((position, call.id))) for call in reversed(calls.values())]
            conversation.append(Exchange(message, pairs))
        elif not isinstance(message, ToolMessage):
            conversation.append(message)
    return conversation


def _results(messages: Sequence[Message]) -> Mapping[tuple[int, str], ToolMessage]:
    """The result of each call, by the position of the message that made it: later messages may use its id again."""
    makers: dict[str, int] = {}
    results: dict[tuple[int, str], ToolMessage] = {}
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            makers.update((call.id, position) for call in message.tool_calls or ())
        elif isinstance(message, ToolMessage) and message.tool_call_id in makers:
            results.setdefault((makers[message.tool_call_id], message.tool_call_id), message)
    return results
