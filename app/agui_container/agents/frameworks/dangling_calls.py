"""Calls that a history leaves without a result: frameworks would run them, or send models what those refuse for good.

Rule: such a call was cut off, or a client made it up; it gets a result that says so, and nothing runs. What the client
is asked to do stays open until somebody speaks again. Results stand behind their calls: a late one takes the place of
what stood in for it, and one that a snapshot has put elsewhere comes back. Models may use an id again: a result belongs
to the last call before it, and where that has one, or there is none, to the next. Source: AG-UI spec 1.1,
events/tool-calls#frontend-tools.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence

from ag_ui.core import AssistantMessage, Message, ToolCall, ToolMessage
from msgspec import Struct

from agui_container.agents.assistant.history import NO_RESULT


class OpenCall(Struct, eq=False):
    """A call where it stands in a history, and its result; ``stand_in_id`` is that of what stands in for one."""

    call: ToolCall
    stand_in_id: str
    result: ToolMessage | None = None

    def accept_result(self, said: ToolMessage) -> bool:
        """The first result counts, or the first that does not only stand in; such a late one has the other's id."""
        if self.result is None:
            self.result = said
            return True
        if is_stand_in(self.result) and not is_stand_in(said):
            self.result = said.model_copy(update={"id": self.result.id})
            return True
        return False

    def result_message(self, kept: Collection[str]) -> ToolMessage:
        """The result. What is ``kept`` by its id is not told again under another."""
        if self.result is None:
            # Its words are in the content, because frameworks drop ``error``.
            return ToolMessage(id=self.stand_in_id, tool_call_id=self.call.id, content=NO_RESULT, error=NO_RESULT)
        if self.stand_in_id in kept:
            return self.result.model_copy(update={"id": self.stand_in_id})
        return self.result


def with_results(
    messages: Sequence[Message], client_tools: Collection[str], kept: Collection[str] = ()
) -> list[Message]:
    """The messages with one result for every call, but for those of the last turn that are the client's to answer.

    Args:
        messages: a history.
        client_tools: names of what the client runs.
        kept: ids of the messages that the framework has already.
    """
    whole: list[Message] = []
    waiting: list[OpenCall] = []
    for message, calls in zip(messages, calls_by_message(messages), strict=True):
        if not continues_turn(message):
            whole.extend(call.result_message(kept) for call in waiting)
            waiting.clear()
        if not isinstance(message, ToolMessage):
            whole.append(message)
            waiting.extend(calls)
            continue
        for call in calls:
            if call in waiting:
                waiting.remove(call)
                whole.append(call.result_message(kept))
    left = [call for call in waiting if call.result or call.call.function.name not in client_tools]
    return [*whole, *(call.result_message(kept) for call in left)]


def calls_by_message(messages: Sequence[Message]) -> list[list[OpenCall]]:
    """For each message the calls that it makes, or the one that it answers."""
    made: defaultdict[str, list[OpenCall]] = defaultdict(list)
    spare: defaultdict[str, list[ToolMessage]] = defaultdict(list)
    found: list[list[OpenCall]] = []
    for message in messages:
        calls = []
        for call in calls_of(message):
            number = f"-{len(made[call.id]) + 1}" if made[call.id] else ""
            asked = OpenCall(call, f"unanswered-{call.id}{number}", spare[call.id].pop(0) if spare[call.id] else None)
            made[call.id].append(asked)
            calls.append(asked)
        if isinstance(message, ToolMessage):
            calls = [asked for asked in made[message.tool_call_id][-1:] if asked.accept_result(message)]
            spare[message.tool_call_id] += [] if calls else [message]
        found.append(calls)
    return found


def continues_turn(message: Message) -> bool:
    """Whether a message belongs to the turn before it: a call, or the result of one."""
    return isinstance(message, ToolMessage) or bool(calls_of(message))


def calls_of(message: Message) -> Sequence[ToolCall]:
    """The calls that a message makes."""
    return (message.tool_calls or ()) if isinstance(message, AssistantMessage) else ()


def is_stand_in(result: ToolMessage) -> bool:
    """Whether a result is such a one; a framework may have given it another id."""
    return result.content == NO_RESULT
