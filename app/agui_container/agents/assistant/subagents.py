"""One invocation of a subagent: what its agent yields, as part of the run it works for.

Rules: what comes in untagged goes out with the invocation's ``subagentRunId``; what has another tag is a descendant's
and keeps it. RUN_* of the agent are the invocation's own ends and stay inside, and so does MESSAGES_SNAPSHOT, which
would replace the conversation of the whole run. Everything passes the run's pipeline (``ctx.emit``) first, so what
is illegal is refused there before it is counted here. Source: AG-UI spec 1.1, events/subagents.

Other agents as tools of an assistant: a call hands over a task, and what the agent says last is the result.

Rule: an invocation is a run inside the run. Whatever its agent does, it begins with SUBAGENT_STARTED and ends with
SUBAGENT_FINISHED or SUBAGENT_ERROR, all it emits between them is attributed to it, and its failure is a tool's failure
that the assistant can go on from. If it stops to ask, it is suspended, and an answer takes it up again under the same
id. Source: AG-UI spec 1.1, events/subagents.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
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
    UserMessage,
)
from ag_ui.core import Tool as ToolSpec
from msgspec import Struct
from msgspec.structs import replace as replace_struct
from pydantic_core import to_json

from agui_container.agents.assistant.toolbox import failed_result, is_failure, result_event
from agui_container.agents.custom.as_agent import with_store
from agui_container.ports import Agent, Item, RunContext, RunState, Suspended, Suspension, ToolContent, ToolError
from agui_container.ports.store import Store
from agui_container.protocol.conversation.transcript import Transcript
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import AppError, ErrorCode, IllegalEvent
from agui_container.protocol.expander import Expander
from agui_container.protocol.grammar import KINDS
from agui_container.protocol.validator import ProducerRules, RunSequence, tag_of
from agui_container.runtime.aclosing import maybe_aclosing
from agui_container.runtime.loop_bridge import LoopBridge
from agui_container.telemetry import Delegation

NO_RESULT = "Error: this call was not answered."


class SubagentInvocation:
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
        self._duties = ProducerRules(messages, resumed=True)
        self._transcript = Transcript(messages)

    def make_context(self) -> RunContext:
        """What its agent is given. It leads here, so it is not kept here."""
        outlet = LoopBridge(self.send)
        return replace(
            self._parent,
            thread_id=self._thread_id,
            emit=outlet.emit,
            state=RunState(self._parent.state.read, outlet.emit),
            tool_call_id=None,
            subagent_run_id=self.key,
            part_of=self._parent.part_of or self._parent.thread_id,
        )

    def make_input(self, answers: Sequence[ResumeEntry]) -> RunAgentInput:
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
                self._forward(event)

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
        self._forward(SubagentFinishedEvent(subagent_run_id=self.key, result=ended.result, outcome=success))
        self._closed = True
        return self._result(ended)

    def fail(self, message: str, code: str | None) -> ToolError:
        """Close it as failed; the error for the model that handed over the task."""
        # A run that is too large, or whose ids clash, takes no closers either: then its own end writes them.
        with contextlib.suppress(IllegalEvent, ValueError):
            self._close(message)
            self._forward(SubagentErrorEvent(subagent_run_id=self.key, message=message, code=code))
        self._closed = True
        return ToolError(message)

    def _suspend(self, interrupts: Sequence[Interrupt]) -> Suspended:
        own = [interrupt.id for interrupt in interrupts if interrupt.subagent_run_id in (None, self.key)]
        self._close(None, answered=False)
        suspended = SubagentFinishedSuspendedOutcome(interrupt_ids=own or None)
        self._forward(SubagentFinishedEvent(subagent_run_id=self.key, outcome=suspended))
        self._closed = True
        tagged = [
            interrupt if interrupt.subagent_run_id else interrupt.model_copy(update={"subagent_run_id": self.key})
            for interrupt in interrupts
        ]
        return Suspended(Suspension(tagged, self.key, self._transcript.messages))

    def _close(self, error: str | None, *, answered: bool = True) -> None:
        """End what is open, and answer calls that nobody will."""
        for event in self._expander.flush():
            self._forward(event)
        for event in self._sequence.closers(error):
            if not (
                isinstance(event, SubagentFinishedEvent | SubagentErrorEvent) and event.subagent_run_id == self.key
            ):
                self._forward(event)
        for call_id in self._duties.open_calls() if answered else ():
            self._forward(result_event(failed_result(NO_RESULT).to_message(self._parent.new_id(), call_id)))

    def _forward(self, event: BaseEvent) -> None:
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


BURST = 16
"""Events that an agent may send before other runs and /ping get their turn."""

FAILED = "The agent failed; the server's log has the cause."

PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, with all that must be known for it"}},
    "required": ["task"],
    "additionalProperties": False,
}


class Subagent(Struct, frozen=True):
    """Implements ``ports.Tool`` and ``ports.Resumable`` with any agent.

    Attributes:
        name: the tool's name, and the agent's towards clients.
        description: what it is good for; the model and the client read it.
        agent: answers each task in a conversation of its own, which holds that task and nothing else. It is offered no
            client tools.
    """

    name: str
    description: str
    agent: Agent

    def kept_in(self, store: Store, depth: int) -> "Subagent":
        """The same, its agent keeping things there."""
        return replace_struct(self, agent=with_store(self.agent, store, depth))

    @property
    def spec(self) -> ToolSpec:
        """One argument, the task."""
        return ToolSpec(name=self.name, description=self.description, parameters=PARAMETERS)

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Hand over ``task``. Raises ``ToolError``, and ``Suspended`` when the agent stopped to ask."""
        task = arguments.get("task")
        if not isinstance(task, str) or len(arguments) > 1:
            raise ToolError("the arguments must be one text, 'task'.")
        return await self._invoke(ctx.new_id(), [UserMessage(id=ctx.new_id(), content=task)], (), ctx)

    async def resume(self, suspension: Suspension, answers: Sequence[ResumeEntry], ctx: RunContext) -> ToolContent:
        """Go on where the agent stopped. Raises as ``call`` does."""
        return await self._invoke(suspension.subagent_run_id, suspension.messages, answers, ctx)

    async def _invoke(
        self, key: str, messages: Sequence[Message], answers: Sequence[ResumeEntry], ctx: RunContext
    ) -> ToolContent:
        invocation = SubagentInvocation(key, messages, ctx)
        invocation.start(self.name, self.description)
        try:
            with Delegation(self.name, self.description, key, ctx):
                async with maybe_aclosing(
                    self.agent.run(invocation.make_input(answers), invocation.make_context())
                ) as items:
                    await run_agent(items, invocation, ctx)
                return invocation.finish()
        except AppError as error:
            ctx.logger.warning("subagent=<%s> | it failed: %s", self.name, error.code, exc_info=True)
            raise invocation.fail(error.message, error.code) from error
        except IllegalEvent as error:
            ctx.logger.exception("subagent=<%s> | it broke the protocol", self.name)
            raise invocation.fail(FAILED, ErrorCode.AGENT_ERROR) from error
        except BaseException as error:
            if isinstance(error, ToolError | Suspended) or not is_failure(error):
                raise
            ctx.logger.exception("subagent=<%s> | it failed", self.name)
            raise invocation.fail(FAILED, ErrorCode.AGENT_ERROR) from error


async def run_agent(items: AsyncIterator[Item], invocation: SubagentInvocation, ctx: RunContext) -> None:
    """Take what the agent yields, up to its end; what follows that is left."""
    count = 0
    async for item in items:
        if invocation.ended:
            return
        invocation.emit(item)
        count += 1
        if count % BURST == 0 and not invocation.ended:
            await ctx.yield_turn()
