"""Other agents as tools of an assistant: a call passes a task, and the agent's last answer is the result.

Rules:
- An invocation is a run inside the parent's run. It begins with SUBAGENT_STARTED and ends with SUBAGENT_FINISHED or
  SUBAGENT_ERROR, even if its agent fails. Its failure is a tool failure, after which the assistant continues.
- Untagged events of the agent get the invocation's ``subagentRunId``. Tagged events belong to its own subagents and
  keep their tag.
- RUN_* events of the agent end the invocation only. They are not forwarded, and neither is MESSAGES_SNAPSHOT, which
  would replace the conversation of the parent's run.
- Each event passes the pipeline of the parent's run (``ctx.emit``) before it is recorded here, so an illegal event is
  rejected first.
- If the agent ends with interrupts, the invocation is suspended. An answer resumes it under the same id.

Source: AG-UI spec 1.1, events/subagents.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

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
from msgspec.structs import replace

from agui_container.agents.as_agent import with_store
from agui_container.agents.gate.calls import failed_result, result_event
from agui_container.agents.gate.toolbox import is_failure
from agui_container.log_values import format_fields
from agui_container.ports import (
    Agent,
    Item,
    RunContext,
    RunState,
    Suspension,
    ToolContent,
    ToolError,
    ToolSuspension,
    interrupts_of,
)
from agui_container.ports.agent import maybe_aclosing
from agui_container.ports.store import Store
from agui_container.protocol.encoder import encode_whole
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.grammar import KINDS
from agui_container.protocol.strict_json import json_text, whole_text, whole_value
from agui_container.protocol.validator import ProducerRules, RunSequence, tag_of
from agui_container.telemetry.spans import Delegation
from agui_container.threads import LoopBridge
from agui_core.expander import Expander, IllegalEvent
from agui_core.transcript import Transcript

NO_RESULT = "Error: this call was not answered."


class SubagentInvocation:
    """A run of a subagent inside the run of its parent. ``key`` is the ``subagentRunId``."""

    def __init__(self, key: str, messages: Sequence[Message], parent: RunContext) -> None:
        self.key = key
        self.ended: RunFinishedEvent | None = None
        self._closed = False
        self._parent = parent
        self._thread_id = f"{parent.thread_id}/{key}"
        self._expander = Expander(parent.new_id)
        self._sequence = RunSequence()
        self._rules = ProducerRules(messages, resumed=True)
        self._transcript = Transcript(messages)

    def make_context(self) -> RunContext:
        """Create the context for the agent. It is not stored here, because it refers to this invocation (no cycle)."""
        outlet = LoopBridge(self.send)
        return replace(
            self._parent,
            thread_id=self._thread_id,
            emit=outlet.emit,
            state=RunState(self._parent.state.read, outlet.emit),
            tool_call_id=None,
            subagent_run_id=self.key,
            part_of=self._parent.part_of or self._parent.thread_id,
            offer=None,
        )

    def make_input(self, answers: Sequence[ResumeEntry]) -> RunAgentInput:
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
        """Raise ``IllegalEvent`` for an event that the parent's run would reject, ``ToolError`` for RUN_ERROR."""
        events, accepted = self._expander.expand(item), 0
        try:
            if len(events) > 1 and not KINDS[type(events[-1])].is_boundary:
                encode_whole(events[-1])  # Raise before the events in front of it change anything.
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
        """Process an item of a tool of the agent. RUN_* events are illegal: only the agent may end the invocation."""
        if self._closed:
            return
        if isinstance(item, RunStartedEvent | RunFinishedEvent | RunErrorEvent):
            raise IllegalEvent(f"{type(item).__name__} from a tool")
        self.emit(item)

    def finish(self) -> ToolContent:
        """Return the call's result. Raises ``ToolError`` for a cancelled agent, ``ToolSuspension`` for interrupts."""
        ended = self.ended or RunFinishedEvent(thread_id=self._thread_id, run_id=self._parent.run_id)
        self._parent.usage.extend(ended.usage or ())
        if isinstance(ended.outcome, RunFinishedCancelledOutcome):
            raise self.fail("The agent was cancelled.", None)
        if isinstance(ended.outcome, RunFinishedInterruptOutcome):
            raise self.suspend(ended.outcome.interrupts)
        self._close(None)
        success = SubagentFinishedSuccessOutcome()
        result = whole_value(ended.result)
        self._forward(SubagentFinishedEvent(subagent_run_id=self.key, result=result, outcome=success))
        self._closed = True
        return self._last_answer() if result is None else result if isinstance(result, str) else json_text(result)

    def fail(self, message: str, code: str | None) -> ToolError:
        message = whole_text(message)
        # A run that is too large, or whose ids clash, rejects these events, too. The end of that run then closes them.
        with contextlib.suppress(IllegalEvent, ValueError):
            self._close(message)
            self._forward(SubagentErrorEvent(subagent_run_id=self.key, message=message, code=code))
        self._closed = True
        return ToolError(message)

    def suspend(self, interrupts: Sequence[Interrupt]) -> ToolSuspension:
        own = [interrupt.id for interrupt in interrupts if interrupt.subagent_run_id in (None, self.key)]
        self._close(None, answered=False)
        suspended = SubagentFinishedSuspendedOutcome(interrupt_ids=own or None)
        self._forward(SubagentFinishedEvent(subagent_run_id=self.key, outcome=suspended))
        self._closed = True
        tagged = [
            interrupt if interrupt.subagent_run_id else interrupt.model_copy(update={"subagent_run_id": self.key})
            for interrupt in interrupts
        ]
        return ToolSuspension(Suspension(tagged, self.key, self._transcript.messages))

    def _close(self, error: str | None, *, answered: bool = True) -> None:
        """Forward the events that end all open parts. If ``answered``, forward error results for unanswered calls."""
        for event in self._expander.flush():
            self._forward(event)
        for event in self._sequence.closers(error):
            if not (
                isinstance(event, SubagentFinishedEvent | SubagentErrorEvent) and event.subagent_run_id == self.key
            ):
                self._forward(event)
        for call_id in self._rules.open_calls() if answered else ():
            self._forward(result_event(failed_result(NO_RESULT).to_message(self._parent.new_id(), call_id)))

    def _forward(self, event: BaseEvent) -> None:
        tag = tag_of(event)
        tagged = event
        if tag is None and "subagent_run_id" in type(event).model_fields:
            tagged = event.model_copy(update={"subagent_run_id": self.key})
        if tag is None:
            self._rules.check(event)
        self._parent.emit(tagged)
        self._sequence.feed(tagged)
        if tag is None:
            # The agent knows its own conversation without the tag.
            self._rules.feed(event)
            self._transcript.feed(event)

    def _last_answer(self) -> str:
        for message in reversed(self._transcript.messages):
            if isinstance(message, AssistantMessage) and message.content:
                return whole_text(message.content)
        return ""


BURST = 16
"""Number of events after which an agent yields the event loop to other runs and to /ping."""

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
        name: name of the tool, and of the agent in SUBAGENT_STARTED.
        description: purpose of the agent, for the model and the client.
        agent: the agent that answers each task in a new conversation. It gets no client tools.
    """

    name: str
    description: str
    agent: Agent

    def with_store(self, store: Store, depth: int) -> "Subagent":
        return replace(self, agent=with_store(self.agent, store, depth))

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, parameters=PARAMETERS)

    async def call(self, arguments: Mapping[str, object], ctx: RunContext) -> ToolContent:
        """Run the agent on the argument ``task``. Return its last answer.

        Raises:
            ToolError: the arguments are wrong, or the agent failed or was cancelled.
            ToolSuspension: the agent ended with interrupts.
        """
        task = arguments.get("task")
        if not isinstance(task, str) or len(arguments) > 1:
            raise ToolError("the arguments must be one text, 'task'.")
        return await self._invoke(ctx.new_id(), [UserMessage(id=ctx.new_id(), content=task)], (), ctx)

    async def resume(self, suspension: Suspension, answers: Sequence[ResumeEntry], ctx: RunContext) -> ToolContent:
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
            exc_info = error
            ctx.logger.warning(
                "subagent failed %s", format_fields({"subagent": self.name, "code": error.code}), exc_info=exc_info
            )
            raise invocation.fail(error.message, error.code) from error
        except IllegalEvent as error:
            ctx.logger.exception("subagent emitted an illegal event %s", format_fields({"subagent": self.name}))
            raise invocation.fail(FAILED, ErrorCode.AGENT_ERROR) from error
        except BaseException as error:
            if isinstance(error, ToolError | ToolSuspension) or not is_failure(error):
                raise
            if asked := interrupts_of(error):
                raise invocation.suspend(asked) from error
            ctx.logger.error(  # noqa: TRY400 - only the trace of user code
                "subagent failed %s", format_fields({"subagent": self.name}), exc_info=error
            )
            raise invocation.fail(FAILED, ErrorCode.AGENT_ERROR) from error


async def run_agent(items: AsyncIterator[Item], invocation: SubagentInvocation, ctx: RunContext) -> None:
    """Process the agent's items up to RUN_FINISHED. Items after it are ignored."""
    count = 0
    async for item in items:
        if invocation.ended:
            return
        invocation.emit(item)
        count += 1
        if count % BURST == 0 and not invocation.ended:
            await ctx.yield_turn()
