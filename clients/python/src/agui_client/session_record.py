"""All that is known of a session: its conversation, its open questions, and the draft of its next run."""

from dataclasses import dataclass, field
from enum import StrEnum

from ag_ui.core import (
    PROTOCOL_VERSION,
    ActivityMessage,
    BaseEvent,
    Context,
    Interrupt,
    Message,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    ToolCall,
)

from agui_client.client_tools import ClientTools
from agui_client.conversation import Conversation


class SessionStatus(StrEnum):
    """Whose turn it is."""

    NOT_STARTED = "not_started"
    AGENT_TURN = "agent_turn"
    CLIENT_TOOL_TURN = "client_tool_turn"
    USER_TURN = "user_turn"


class Outcome(StrEnum):
    """End of the last run."""

    SUCCESS = "success"
    INTERRUPT = "interrupt"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass
class Draft:
    """The next run. Its messages are at the end of the conversation, too."""

    is_due: bool = False
    messages: list[Message] = field(default_factory=list)
    answers: list[ResumeEntry] = field(default_factory=list)


@dataclass
class SessionRecord:
    """Facts of one session.

    Attributes:
        outcome: of the last run. None before its end.
        failure: RUN_ERROR of the last run, if it failed.
        interrupts: questions that wait for an answer.
        pending_calls: calls that this client must answer.
        is_reading: True while a run is open that has not been read to its end.
    """

    thread_id: str
    conversation: Conversation
    tools: ClientTools
    context: list[Context]
    forwarded_props: dict[str, object]
    draft: Draft = field(default_factory=Draft)
    outcome: Outcome | None = None
    failure: RunErrorEvent | None = None
    interrupts: list[Interrupt] = field(default_factory=list)
    pending_calls: list[ToolCall] = field(default_factory=list)
    is_reading: bool = False

    @property
    def status(self) -> SessionStatus:
        """Whose turn it is."""
        if self.draft.is_due or self.is_reading:
            return SessionStatus.AGENT_TURN
        if self.pending_calls and not self.interrupts:
            return SessionStatus.CLIENT_TOOL_TURN
        return SessionStatus.USER_TURN if self.conversation.messages else SessionStatus.NOT_STARTED

    def run_input(self, run_id: str) -> RunAgentInput:
        """Make the input of the next run. Activities are no part of an input."""
        return RunAgentInput(
            thread_id=self.thread_id,
            run_id=run_id,
            protocol_version=PROTOCOL_VERSION,
            messages=[each for each in self.conversation.messages if not isinstance(each, ActivityMessage)],
            state=self.conversation.state,
            tools=self.tools.specs,
            context=self.context,
            forwarded_props=dict(self.forwarded_props),
            resume=self.draft.answers or None,
        )

    def apply(self, event: BaseEvent) -> None:
        """Take in an event of the run that is being read."""
        self.conversation.apply(event)
        if isinstance(event, RunStartedEvent):
            self._begin()
        elif isinstance(event, RunFinishedEvent):
            self._finish(event)
        elif isinstance(event, RunErrorEvent):
            self.end(Outcome.ERROR)
            self.failure = event

    def end(self, outcome: Outcome) -> None:
        """End the run that is being read."""
        self.draft = Draft()
        self.outcome = outcome
        self.is_reading = False

    def _begin(self) -> None:
        """Forget what the run that has started takes over."""
        self.draft = Draft()
        self.outcome = self.failure = None
        self.interrupts, self.pending_calls = [], []

    def _finish(self, event: RunFinishedEvent) -> None:
        match event.outcome:
            case RunFinishedInterruptOutcome(interrupts=interrupts):
                self.interrupts = interrupts
                self.end(Outcome.INTERRUPT)
            case RunFinishedCancelledOutcome():
                self.end(Outcome.CANCELLED)
            case outcome:
                named = outcome.pending_tool_call_ids or () if isinstance(outcome, RunFinishedSuccessOutcome) else ()
                declared = {tool.name for tool in self.tools.specs}
                self.pending_calls = [
                    call for call in self.conversation.open_calls if call.id in named or call.function.name in declared
                ]
                self.end(Outcome.SUCCESS)
