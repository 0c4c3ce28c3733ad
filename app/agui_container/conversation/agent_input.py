"""The input of a run as its agent gets it.

Rule: an agent gets no activities, because clients send none to agents (``prepareRunAgentInput``). It gets the reason of
a failed result in the content, because most frameworks and models do not read ``error``. The thread and its clients
have the result as it was sent, so a snapshot by the agent is corrected.
"""

from collections.abc import Iterable, Mapping

from ag_ui.core import ActivityMessage, BaseEvent, Message, MessagesSnapshotEvent, RunAgentInput, TextPart, ToolMessage

from agui_core.content import text_of


def input_for_agent(run_input: RunAgentInput) -> RunAgentInput:
    messages = [_with_reason(message) for message in run_input.messages if not isinstance(message, ActivityMessage)]
    return run_input if messages == run_input.messages else run_input.model_copy(update={"messages": messages})


def results_with_reason(messages: Iterable[Message]) -> Mapping[str, ToolMessage]:
    """Return the results, by id, that ``input_for_agent`` changes."""
    return {each.id: each for each in messages if isinstance(each, ToolMessage) and _with_reason(each) is not each}


def with_sent_results(event: BaseEvent, sent: Mapping[str, ToolMessage]) -> BaseEvent:
    """Return a snapshot with the results as they were sent that the agent has not changed. ``sent`` has them by id."""
    if not isinstance(event, MessagesSnapshotEvent):
        return event

    def as_sent(message: Message) -> Message:
        original = sent.get(message.id) if isinstance(message, ToolMessage) else None
        return original if original and _with_reason(original).content == message.content else message

    return event.model_copy(update={"messages": [as_sent(message) for message in event.messages]})


def _with_reason(message: Message) -> Message:
    if not isinstance(message, ToolMessage) or not message.error:
        return message
    reason = message.error.strip()
    if reason in text_of(message.content):
        return message
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{message.content}\n{reason}".lstrip()})
    return message.model_copy(update={"content": [*message.content, TextPart(text=reason)]})
