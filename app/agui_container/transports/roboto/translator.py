"""One run of a session: a request as its input, and its events as changes of the session.

Rule: pure translation. A client of this protocol polls, and its answers are requests of their own. So a conversation
is one run, and calls that wait end it.
"""

from collections.abc import Iterable, Sequence

from ag_ui.core import BaseEvent, EventType

from agui_container.protocol.conversation.recovery import EVENT
from agui_container.protocol.errors import clip_message
from agui_container.transports.conversation.approvals import ApprovalRequest, approval_requests
from agui_container.transports.conversation.events import RUN_ENDS, Cancelled, Event, Failed, Outcome, Unanswered
from agui_container.transports.conversation.pending import Answer
from agui_container.transports.conversation.translator import Opening, Translator
from agui_container.transports.roboto.notes import APPROVAL_REQUIRED, CANCELLED, TurnFailure

NO_APPROVALS = (
    "The agent waits for an approval, which can be given through another protocol only: {names}. "
    "Your next message denies it."
)

SHOWN = {
    EventType.TEXT_MESSAGE_START,
    EventType.TEXT_MESSAGE_CONTENT,
    EventType.TEXT_MESSAGE_END,
    EventType.TOOL_CALL_START,
    EventType.TOOL_CALL_ARGS,
    EventType.TOOL_CALL_END,
    EventType.TOOL_CALL_RESULT,
    EventType.MESSAGES_SNAPSHOT,
}
"""Events that change the messages of a session."""


class RobotoTranslator(Translator[Opening[BaseEvent], None, BaseEvent]):
    """Translates one run. Its messages are the events that change those of the session.

    It asks for nothing and shows nothing of answers, because the stored thread shows the calls that wait.

    Args:
        is_own: True if a client of this protocol began the run. Such a client sees a failure if an approval waits,
            because this protocol has no answers to approvals and the turn would otherwise end with nothing.

    Attributes:
        has_ended: True if the last event of the run was read.
        failure: reason for which the turn has no answer, known at the end of the run.
    """

    def __init__(self, *, is_own: bool) -> None:
        self.has_ended = False
        self.failure: TurnFailure | None = None
        self._is_own = is_own
        self._code: str | None = None
        self._waiting = ""

    def open(self, request: Opening[BaseEvent]) -> Opening[BaseEvent]:
        """Return the run of a request, which ``run_inputs`` has translated."""
        return request

    def feed(self, kind: EventType, event: Event) -> Sequence[BaseEvent]:
        """Return an event that changes the messages."""
        if kind in RUN_ENDS:
            self.has_ended, self._code = True, event.get("code")
            self._waiting = waiting_names(approval_requests(event))
        return [EVENT.validate_python(event)] if kind in SHOWN else []

    def answers(self, _message: None) -> Sequence[Answer]:
        """Return no answers, because they are requests of their own."""
        return []

    def end(self, outcome: Outcome) -> Sequence[BaseEvent]:
        """Note the failure of the turn."""
        match outcome:
            case Failed(error=error):
                self.failure = TurnFailure(code=self._code or error.code, message=error.message)
            case Cancelled():
                self.failure = TurnFailure(code=CANCELLED, message="The turn was cancelled.")
            case Unanswered() if self._waiting and self._is_own:
                message = clip_message(NO_APPROVALS.format(names=self._waiting))
                self.failure = TurnFailure(code=APPROVAL_REQUIRED, message=message)
        return []


def waiting_names(requests: Iterable[ApprovalRequest]) -> str:
    """Return the tools, or the questions of an agent, that wait for answers, separated by commas."""
    return ", ".join(dict.fromkeys(request.label for request in requests))
