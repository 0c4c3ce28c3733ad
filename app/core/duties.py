"""What AG-UI asks of a producer and no client checks, so that only a server can.

Rule: a result answers a call that exists, interrupts are named once, and a successful end names exactly the calls it
left unanswered. Source: AG-UI spec 1.1, events/tool-calls#frontend-tools and basic/patterns/interrupt-resume.
"""

from collections.abc import Iterable

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Message,
    MessagesSnapshotEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from app.core.errors import IllegalEvent


class Duties:
    """The calls of one run and what has answered them.

    Args:
        history: the input's messages; their calls may be answered in this run.
        resumed: whether the run answers interrupts; then it may bring the results of calls that were held for them,
            also where a client sends no history.
    """

    __slots__ = ("_known", "_resumed", "_unanswered")

    def __init__(self, history: Iterable[Message], *, resumed: bool = False) -> None:
        self._known = dict.fromkeys(_call_ids(history))  # a set that is empty takes three times as much
        self._resumed = resumed
        self._unanswered: dict[str, None] = {}

    def check(self, event: BaseEvent) -> None:
        """Raises ``IllegalEvent`` for what may not come; changes nothing."""
        match event:
            case ToolCallResultEvent():
                if event.tool_call_id not in self._known and not self._resumed:
                    raise IllegalEvent(f"TOOL_CALL_RESULT for the unknown call {event.tool_call_id!r}")
            case RunFinishedEvent(outcome=RunFinishedInterruptOutcome() as outcome):
                _check_interrupts(outcome)

    def feed(self, event: BaseEvent) -> None:
        """Take note of an event that may come. Only those that ``tells_of_calls`` say something here."""
        match event:
            case ToolCallStartEvent():
                self._known[event.tool_call_id] = None
                self._unanswered[event.tool_call_id] = None
            case ToolCallResultEvent():
                self._unanswered.pop(event.tool_call_id, None)
            case MessagesSnapshotEvent():
                self._known.update(dict.fromkeys(_call_ids(event.messages)))

    def pending(self) -> list[str]:
        """The ids of the calls this run made and did not answer, in the order they were made."""
        return list(self._unanswered)


def _call_ids(messages: Iterable[Message]) -> list[str]:
    return [
        call.id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls or ()
    ]


def _check_interrupts(outcome: RunFinishedInterruptOutcome) -> None:
    ids = [interrupt.id for interrupt in outcome.interrupts]
    if not ids:
        raise IllegalEvent("an interrupt outcome without an interrupt")
    if len(set(ids)) < len(ids):
        raise IllegalEvent("two interrupts share one id")
