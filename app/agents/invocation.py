"""One invocation of a subagent: what its agent yields, as part of the run it works for.

Rules: what comes in untagged goes out with the invocation's ``subagentRunId``; what has another tag is a descendant's
and keeps it. RUN_* of the agent are the invocation's own ends and stay inside, and so does MESSAGES_SNAPSHOT, which
would replace the conversation of the whole run. Everything passes the run's pipeline (``ctx.emit``) first, so what
is illegal is refused there before it is counted here. Source: AG-UI spec 1.1, events/subagents.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuccessOutcome,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
)
from pydantic_core import to_json

from app.agents.results import failure, shown
from app.core.chunks import Expander
from app.core.duties import Duties
from app.core.encoder import encode
from app.core.errors import IllegalEvent
from app.core.fold import Transcript
from app.core.order import KINDS
from app.core.sequence import RunSequence, tag_of
from app.outlet import Outlet
from app.ports import Item, RunContext, State, Suspended, Suspension, ToolContent, ToolError

UNANSWERED = "Error: this call was not answered."


class Invocation:
    """A run inside the run.

    Args:
        key: its ``subagentRunId``.
        messages: its own conversation so far.
        parent: the context of the call that hands over the task.
    """

    def __init__(self, key: str, messages: Sequence[Message], parent: RunContext) -> None:
        self.key = key
        self.ended: RunFinishedEvent | None = None
        self._closed = False
        self._parent = parent
        self._thread_id = f"{parent.thread_id}/{key}"
        self._expander = Expander(parent.new_id)
        self._sequence = RunSequence()
        self._duties = Duties(messages, resumed=True)
        self._transcript = Transcript(messages)

    def context(self) -> RunContext:
        """What its agent is given. It leads here, so it is not kept here."""
        outlet = Outlet(self.send)
        return replace(
            self._parent,
            thread_id=self._thread_id,
            emit=outlet.emit,
            state=State(self._parent.state.read, outlet.emit),
            tool_call_id=None,
            subagent_run_id=self.key,
            part_of=self._parent.part_of or self._parent.thread_id,
        )

    def input(self, answers: Sequence[ResumeEntry]) -> RunAgentInput:
        """What the agent is asked: its conversation, on a thread of its own, and the run's state."""
        return RunAgentInput(
            thread_id=self._thread_id,
            run_id=self._parent.run_id,
            state=self._parent.state.value,
            messages=self._transcript.messages,
            tools=[],
            context=[],
            resume=list(answers) or None,
        )

    def start(self, name: str, description: str) -> None:
        """Announce it."""
        started = SubagentStartedEvent(
            subagent_run_id=self.key,
            name=name,
            description=description,
            parent_subagent_run_id=self._parent.subagent_run_id,
            parent_tool_call_id=self._parent.tool_call_id,
        )
        self._parent.emit(started)
        self._sequence.feed(RunStartedEvent(thread_id=self._thread_id, run_id=self._parent.run_id))
        self._sequence.feed(SubagentStartedEvent(subagent_run_id=self.key, name=name))

    def emit(self, item: Item) -> None:
        """Take what the agent yields.

        Raises:
            IllegalEvent: where the run would.
            ToolError: the agent says that it failed.
        """
        events, accepted = self._expander.expand(item), 0
        try:
            if len(events) > 1 and not KINDS[type(events[-1])].is_boundary:
                encode(events[-1])  # an event that cannot be encoded must end nothing
            for event in events:
                self._accept(event)
                accepted += 1
        finally:
            if accepted < len(events):
                self._expander.rollback(events[:accepted])

    def _accept(self, event: BaseEvent) -> None:
        match event:
            case RunStartedEvent():
                pass
            case RunFinishedEvent():
                self.ended = event
            case RunErrorEvent():
                raise self.fail(event.message, event.code)
            case MessagesSnapshotEvent():
                self._transcript.feed(event)
            case _:
                self._pass_on(event)

    def send(self, item: Item) -> None:
        """Take what a tool sends: ``emit``, but for a part, and nothing once the invocation is over.

        Raises:
            IllegalEvent: also for RUN_*; where the invocation ends is its agent's to say.
        """
        if self._closed:
            return
        if isinstance(item, RunStartedEvent | RunFinishedEvent | RunErrorEvent):
            raise IllegalEvent(f"{type(item).__name__} from a tool")
        self.emit(item)

    def finish(self) -> ToolContent:
        """Close it; the result for the model that handed over the task.

        Raises:
            ToolError: it was cancelled.
            Suspended: it stopped to ask.
        """
        ended = self.ended or RunFinishedEvent(thread_id=self._thread_id, run_id=self._parent.run_id)
        self._parent.usage.extend(ended.usage or ())
        if isinstance(ended.outcome, RunFinishedCancelledOutcome):
            raise self.fail("The agent was cancelled.", None)
        if isinstance(ended.outcome, RunFinishedInterruptOutcome):
            raise self._suspend(ended.outcome.interrupts)
        self._close(None)
        success = SubagentFinishedSuccessOutcome()
        self._pass_on(SubagentFinishedEvent(subagent_run_id=self.key, result=ended.result, outcome=success))
        self._closed = True
        return self._result(ended)

    def fail(self, message: str, code: str | None) -> ToolError:
        """Close it as failed; the error for the model that handed over the task."""
        # A run that is too large, or whose ids clash, takes no closers either: then its own end writes them.
        with contextlib.suppress(IllegalEvent, ValueError):
            self._close(message)
            self._pass_on(SubagentErrorEvent(subagent_run_id=self.key, message=message, code=code))
        self._closed = True
        return ToolError(message)

    def _suspend(self, interrupts: Sequence[Interrupt]) -> Suspended:
        own = [interrupt.id for interrupt in interrupts if interrupt.subagent_run_id in (None, self.key)]
        self._close(None, answered=False)
        suspended = SubagentFinishedSuspendedOutcome(interrupt_ids=own or None)
        self._pass_on(SubagentFinishedEvent(subagent_run_id=self.key, outcome=suspended))
        self._closed = True
        tagged = [
            interrupt if interrupt.subagent_run_id else interrupt.model_copy(update={"subagent_run_id": self.key})
            for interrupt in interrupts
        ]
        return Suspended(Suspension(tagged, self.key, self._transcript.messages))

    def _close(self, error: str | None, *, answered: bool = True) -> None:
        """End what is open, and answer calls that nobody will."""
        for event in self._expander.flush():
            self._pass_on(event)
        for event in self._sequence.closers(error):
            if not (
                isinstance(event, SubagentFinishedEvent | SubagentErrorEvent) and event.subagent_run_id == self.key
            ):
                self._pass_on(event)
        for call_id in self._duties.pending() if answered else ():
            self._pass_on(shown(failure(UNANSWERED).message(self._parent.new_id(), call_id)))

    def _pass_on(self, event: BaseEvent) -> None:
        tag = tag_of(event)
        tagged = event
        if tag is None and "subagent_run_id" in type(event).model_fields:
            tagged = event.model_copy(update={"subagent_run_id": self.key})
        if tag is None:
            self._duties.check(event)
        self._parent.emit(tagged)
        self._sequence.feed(tagged)
        if tag is None:
            # Its own conversation: as its agent knows it, without a tag.
            self._duties.feed(event)
            self._transcript.feed(event)

    def _result(self, ended: RunFinishedEvent) -> str:
        if ended.result is not None:
            return ended.result if isinstance(ended.result, str) else to_json(ended.result).decode()
        said = (m.content for m in reversed(self._transcript.messages) if isinstance(m, AssistantMessage) and m.content)
        return next(said, "")
