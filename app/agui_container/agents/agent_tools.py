"""Tools for an agent that is not the assistant: ``ctx.tools`` and ``ctx.call_tool``, with the policy and approvals.

Rules:
- A call that needs an answer ends the run with an interrupt. The run with the answer runs or refuses the approved call
  first, and then calls the agent again from its beginning.
- There every call of the interrupted turn returns its result at once and is not run again: the answered calls, and the
  calls that had ended before the question. A call is recognised by its name and its arguments, or by its id if a
  framework has announced it.
- A question of the agent's own is stored with the demands of the run that asks, and a run that answers it follows them.
- Calls that are running when another call needs an answer end first, so that no result is lost.
- Without tools, servers and rules in the settings, an agent's stream is passed on unchanged.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from typing import NoReturn

from ag_ui.core import (
    Interrupt,
    Message,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    ToolMessage,
)
from msgspec import Struct

from agui_container.agents.approvals.approvals import Approval, Approvals, FinishedCall, read_approval_options
from agui_container.agents.approvals.interrupt_scope import scope_key
from agui_container.agents.approvals.resume import (
    ResumeOutcome,
    Resumption,
    answered_ids,
    call_ids,
    cancelled_event,
    finish_event,
    rules_of_turn,
)
from agui_container.agents.tool_calls.tool_call import ModelToolCall, ToolResult, result_event
from agui_container.agents.tool_calls.tool_sources import gather_tools
from agui_container.agents.tool_calls.toolbox import Toolbox, by_name
from agui_container.ports import (
    CURRENT_RUN,
    Agent,
    Item,
    PendingResult,
    Policy,
    RunContext,
    RunInterrupted,
    Suspension,
    ToolContent,
    ToolError,
    ToolSource,
    interrupts_of,
)
from agui_container.protocol.conversation.transcript import FAILED
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.runtime.aclosing import maybe_aclosing
from agui_container.runtime.surrogates import json_text


class AgentWithTools(Struct, frozen=True):
    """Implements ``ports.Agent``: an agent with the server's tools in its context.

    Attributes:
        agent: the agent.
        sources: sources of tools, such as MCP servers.
        policy: decides for each tool name if it may run, needs an approval or is denied.
        approvals: the calls that wait for an answer.
        is_configured: True if the settings have tools, servers or rules.
        monotonic: monotonic clock in seconds, by which calls are timed.
    """

    agent: Agent
    sources: Sequence[ToolSource]
    policy: Policy
    approvals: Approvals
    is_configured: bool
    monotonic: Callable[[], float]

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """Return the agent's own stream if no call of this run can need an answer, else a stream around it."""
        options = read_approval_options(input.forwarded_props)
        rules = options.added_to(ctx.call_rules.with_policy(self.policy))
        ctx = ctx if rules is ctx.call_rules else replace(ctx, call_rules=rules)
        if self.is_configured or rules.asks_always or input.resume:
            return self._run(input, ctx)
        toolbox = Toolbox.build(ctx.tools, input.tools or (), rules, monotonic=self.monotonic)
        return self.agent.run(input, AgentCalls(toolbox, self.approvals, ctx).context)

    async def _run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        tools, failures = await gather_tools(tuple(ctx.tools.values()), self.sources, ctx)
        for failure in failures:
            yield failure.event
        is_complete = not any(failure.is_down for failure in failures)
        turn = await InterruptedTurn.load(input, self.approvals, ctx)
        questions = await self.approvals.of_questions().load(scope_key(ctx)) if input.resume else ()
        ctx = replace(ctx, call_rules=rules_of_turn(ctx.call_rules, questions, input))
        resumption = Resumption(turn.request, turn.approvals, self.approvals, ctx)
        ctx = resumption.ctx
        toolbox = Toolbox.build(
            by_name(tools), input.tools or (), ctx.call_rules, is_complete=is_complete, monotonic=self.monotonic
        )
        finished: Sequence[FinishedCall] = ()
        if turn.is_interrupted:
            async with aclosing(resumption.results(toolbox)) as results:
                async for result in results:
                    yield result_event(result)
            outcome = resumption.outcome
            if outcome.has_denial and ctx.call_rules.cancels_on_denial:
                yield cancelled_event(ctx)
                return
            if outcome.waiting:
                yield finish_event(ctx, outcome.waiting)
                return
            if outcome.is_late:
                return
            for lost in turn.lost_results():
                yield result_event(lost)
            input = turn.continued(outcome)
            finished = turn.finished_calls(await self.approvals.load(scope_key(ctx)))
        calls = AgentCalls(toolbox, self.approvals, ctx, finished)
        async with aclosing(calls.run(self.agent, input)) as items:
            async for item in items:
                yield item


class InterruptedTurn(Struct, frozen=True):
    """The turn that a run continues.

    Attributes:
        input: the input of the run.
        approvals: the thread's approvals before the answers were applied.
        answered: ids of the interrupts that the run answers.
    """

    input: RunAgentInput
    approvals: Sequence[Approval]
    answered: frozenset[str]

    @classmethod
    async def load(cls, input: RunAgentInput, approvals: Approvals, ctx: RunContext) -> "InterruptedTurn":
        """Read the thread's approvals. Raises ``AppError`` STORE_UNAVAILABLE."""
        stored = await approvals.load(scope_key(ctx))
        named = {entry.interrupt_id for entry in input.resume or ()}
        known = {interrupt.id for approval in stored for interrupt in approval.interrupts}
        return cls(input, stored, frozenset(named & known))

    @property
    def is_interrupted(self) -> bool:
        """True if a call of the thread waits, or if the run answers one."""
        return bool(self.answered) or any(not approval.is_settled for approval in self.approvals)

    @property
    def request(self) -> RunAgentInput:
        """The input with the answers to approvals only. The agent's own questions are its own matter."""
        own = [entry for entry in self.input.resume or () if entry.interrupt_id in self.answered]
        return self.input.model_copy(update={"resume": own})

    def continued(self, outcome: ResumeOutcome) -> RunAgentInput:
        """Return the agent's input, with the results of the decided calls and the answers to its own questions."""
        others = [entry for entry in self.input.resume or () if entry.interrupt_id not in self.answered]
        messages: list[Message] = [*outcome.with_settled_calls(self.input.messages), *self.lost_results()]
        return self.input.model_copy(update={"resume": others or None, "messages": messages})

    def lost_results(self) -> Sequence[ToolMessage]:
        """Return the results of earlier calls of the turn that the client did not receive before the run ended."""
        known, answered = call_ids(self.input.messages), answered_ids(self.input.messages)
        earlier = {each.call.id: each for approval in self._answered() for each in approval.earlier}
        return [
            ToolResult(each.result, each.metadata).to_message(f"result-{call_id}", call_id)
            for call_id, each in earlier.items()
            if call_id in known and call_id not in answered
        ]

    def finished_calls(self, current: Sequence[Approval]) -> Sequence[FinishedCall]:
        """Return all calls of the turn that have a result. ``current`` are the approvals after the answers."""
        ids = {approval.call.id for approval in self._answered()}
        calls: dict[str, FinishedCall] = {}
        for approval in current:
            if approval.call.id in ids and approval.result is not None:
                calls |= {each.call.id: each for each in approval.earlier}
                calls[approval.call.id] = FinishedCall(requested_call(approval), approval.result, approval.metadata)
        return list(calls.values())

    def _answered(self) -> Sequence[Approval]:
        return [each for each in self.approvals if not self.answered.isdisjoint(i.id for i in each.interrupts)]


def own_questions(interrupts: Sequence[Interrupt]) -> Sequence[Approval]:
    """Return an approval without a call for each question. It is found by the id of its interrupt."""
    return [Approval(ModelToolCall(interrupt.id, "", ""), (interrupt,)) for interrupt in interrupts]


def requested_call(approval: Approval) -> ModelToolCall:
    """Return the call as the agent made it. The answer may have edited the arguments of the approval's call."""
    requested = (approval.interrupts[0].metadata or {}).get("arguments")
    return replace(approval.call, arguments=requested) if isinstance(requested, str) else approval.call


class AgentCalls:
    """The calls of ``ctx.call_tool`` in one run.

    Args:
        toolbox: the tools and their policy.
        approvals: makes and stores the approvals of calls that need an answer.
        ctx: the context of the run.
        finished: calls of the interrupted turn with their results.

    Attributes:
        context: the context for the agent.
    """

    def __init__(
        self, toolbox: Toolbox, approvals: Approvals, ctx: RunContext, finished: Sequence[FinishedCall] = ()
    ) -> None:
        self._toolbox = toolbox
        self._approvals = approvals
        self._ctx = ctx
        self._finished = list(finished)
        self._replays = list(finished)
        self._running: list[asyncio.Future[None]] = []
        self._questions: list[Approval] = []
        self._in_threads: list[Future[ToolContent]] = []
        self._loop = asyncio.get_running_loop()
        self.context = replace(ctx, tools=toolbox.server, call_tool=self.call)
        CURRENT_RUN.set(self.context)

    async def run(self, agent: Agent, input: RunAgentInput) -> AsyncGenerator[Item, None]:
        """Run the agent. End with the interrupts of its calls, if there are any.

        Raises:
            AppError: AGENT_ERROR with the text of a ``ToolError`` that the agent did not handle.
        """
        raised: Sequence[Interrupt] = ()
        try:
            async with maybe_aclosing(agent.run(input, self.context)) as items:
                async for item in items:
                    if isinstance(item, RunFinishedEvent):
                        async with self._demands_stored_with(item):
                            yield item
                    elif not isinstance(item, RunStartedEvent):  # the engine has sent it, and perhaps results after it
                        yield item
        except ToolError as error:
            raise AppError(ErrorCode.AGENT_ERROR, clip_message(str(error))) from error
        except BaseException as error:
            raised = interrupts_of(error)
            if not raised:
                raise
        finally:
            for waiting in tuple(self._in_threads):
                waiting.cancel()
        if self._questions:
            questions = [replace(each, earlier=tuple(self._finished)) for each in self._questions]
            async with self._approvals.registered_during(questions, self._ctx):
                yield finish_event(self._ctx, questions)
        elif raised:  # otherwise the agent may have ended the run itself
            end = finish_event(self._ctx, own_questions(raised))
            async with self._demands_stored_with(end):
                yield end

    def _demands_stored_with(self, end: RunFinishedEvent) -> AbstractAsyncContextManager[None]:
        """Store the demands of the run with the agent's own questions, while the run emits its end in this block."""
        outcome = end.outcome
        interrupts = outcome.interrupts if isinstance(outcome, RunFinishedInterruptOutcome) else ()
        questions = own_questions([Interrupt(id=each.id, reason=each.reason) for each in interrupts])
        return self._approvals.of_questions().registered_during(questions, self._ctx)

    def call(
        self, name: str, arguments: Mapping[str, object] | None = None, *, call_id: str | None = None
    ) -> PendingResult:
        """Call a tool. Implements ``ports.ToolCaller``."""
        call = ModelToolCall(call_id or self._ctx.new_id(), name, json_text(arguments or {}))
        return CallResult(lambda: self._call(call, is_announced=call_id is not None), self._call_from_thread)

    def _call_from_thread(self, work: Coroutine[object, object, ToolContent]) -> ToolContent:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._in_threads.append(future)
        future.add_done_callback(self._in_threads.remove)
        return future.result()

    async def _call(self, call: ModelToolCall, *, is_announced: bool) -> ToolContent:
        replay = self._take_replay(call, is_announced=is_announced)
        if replay is not None:
            return content_of(ToolResult(replay.result, replay.metadata))
        if not is_announced:
            for event in call_events(call):
                self._ctx.emit(event)
        decision = self._toolbox.required_approval(call)
        if decision is not None:
            details = await self._toolbox.details(call, self._ctx)
            await self._ask(self._approvals.create(call, decision, self._ctx.new_id(), (), details))
        result = await self._run_tool(call)
        self._finished.append(FinishedCall(call, result.content, result.metadata))
        if not is_announced:
            self._ctx.emit(result_event(result.to_message(self._ctx.new_id(), call.id)))
        return content_of(result)

    async def _run_tool(self, call: ModelToolCall) -> ToolResult:
        running = self._loop.create_future()
        self._running.append(running)
        try:
            (outcome,) = await self._toolbox.run_all([call], self._ctx)
        finally:
            self._running.remove(running)
            running.set_result(None)
        if isinstance(outcome, Suspension):
            await self._ask(Approval(call, outcome.interrupts, (), outcome))
        return outcome

    async def _ask(self, question: Approval) -> NoReturn:
        """Record a question. Wait for the calls that run, and end the run. Raises ``RunInterrupted``."""
        self._questions.append(question)
        await asyncio.sleep(0)  # calls that the agent has made together with this one start
        while self._running:
            await asyncio.wait(self._running)
        raise RunInterrupted([interrupt for each in self._questions for interrupt in each.interrupts])

    def _take_replay(self, call: ModelToolCall, *, is_announced: bool) -> FinishedCall | None:
        """Remove and return the first finished call of the turn that equals this one."""
        for at, each in enumerate(self._replays):
            is_same = each.call.id == call.id if is_announced else is_equal_call(each.call, call)
            if is_same:
                return self._replays.pop(at)
        return None


def is_equal_call(one: ModelToolCall, other: ModelToolCall) -> bool:
    """Return True if two calls have the same name and arguments."""
    return (one.name, one.arguments) == (other.name, other.arguments)


def content_of(result: ToolResult) -> ToolContent:
    """Return the content of a result. Raises ``ToolError`` for the result of a call that failed or was denied."""
    if (result.metadata or {}).get(FAILED):
        raise ToolError(str(result.content).removeprefix("Error: "))
    return result.content


def call_events(call: ModelToolCall) -> Sequence[Item]:
    """Return the events that announce a call."""
    return (
        ToolCallStartEvent(tool_call_id=call.id, tool_call_name=call.name),
        ToolCallArgsEvent(tool_call_id=call.id, delta=call.arguments),
        ToolCallEndEvent(tool_call_id=call.id),
    )


Work = Coroutine[object, object, ToolContent]


class CallResult:
    """Implements ``ports.PendingResult``. The call starts when its result is awaited or taken.

    Args:
        call: starts the call.
        run_on_loop: runs it on the event loop of the run, and blocks the calling thread until it has ended.
    """

    def __init__(self, call: Callable[[], Work], run_on_loop: Callable[[Work], ToolContent]) -> None:
        self._call = call
        self._run_on_loop = run_on_loop

    def __await__(self) -> Generator[object, None, ToolContent]:
        """Run the call in the current task."""
        return self._call().__await__()

    def result(self) -> ToolContent:
        """Run the call on the event loop of the run, and block this thread until it has ended.

        Raises:
            RuntimeError: this is the thread of the event loop, which would wait for itself.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._run_on_loop(self._call())
        raise RuntimeError("Await ctx.call_tool(...) here: result() is for code in a thread.")
