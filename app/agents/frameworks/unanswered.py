"""Calls that a history leaves without a result: frameworks would run them, or send models what those refuse for good.

Rule: such a call was cut off, or a client made it up; it gets a result that says so, and nothing runs. What the client
is asked to do stays open until somebody speaks again. Results stand behind their calls: a late one takes the place of
what stood in for it, and one that a snapshot has put elsewhere comes back. Source: AG-UI spec 1.1,
events/tool-calls#frontend-tools.
"""

from collections.abc import Collection, Iterable, Sequence

from ag_ui.core import AssistantMessage, Message, ToolCall, ToolMessage

from app.agents.history import UNANSWERED


def answered(messages: Sequence[Message], client_tools: Collection[str]) -> list[Message]:
    """The messages with one result for every call, but for those of the last turn that are the client's to answer."""
    results = results_of(message for message in messages if isinstance(message, ToolMessage))
    whole: list[Message] = []
    waiting: dict[str, ToolCall] = {}
    for message in messages:
        if not goes_on(message):
            whole.extend(results.get(call.id) or stand_in(call) for call in waiting.values())
            waiting.clear()
        if isinstance(message, ToolMessage):
            if waiting.pop(message.tool_call_id, None):
                whole.append(results[message.tool_call_id])
            continue
        whole.append(message)
        waiting |= {call.id: call for call in calls_of(message)}
    open_here = [call for call in waiting.values() if call.id in results or call.function.name not in client_tools]
    return [*whole, *(results.get(call.id) or stand_in(call) for call in open_here)]


def results_of(said: Iterable[ToolMessage]) -> dict[str, ToolMessage]:
    """The result of each call: the first, or the first that does not only stand in.

    Such a late one has the id of what stood in for it, so a framework that keeps messages by id is not told it again.
    """
    results: dict[str, ToolMessage] = {}
    for result in said:
        held = results.setdefault(result.tool_call_id, result)
        if stands_in(held) and not stands_in(result):
            results[result.tool_call_id] = result.model_copy(update={"id": held.id})
    return results


def goes_on(message: Message) -> bool:
    """Whether a message belongs to the turn before it: a call, or the result of one."""
    return isinstance(message, ToolMessage) or bool(list(calls_of(message)))


def calls_of(message: Message) -> Iterable[ToolCall]:
    """The calls that a message makes."""
    return (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ()


def stand_in(call: ToolCall) -> ToolMessage:
    """The result of a call that has none. Its words are in the content, because frameworks drop ``error``."""
    return ToolMessage(id=f"unanswered-{call.id}", tool_call_id=call.id, content=UNANSWERED, error=UNANSWERED)


def stands_in(result: ToolMessage) -> bool:
    """Whether a result is such a one; a framework may have given it another id."""
    return result.content == UNANSWERED
