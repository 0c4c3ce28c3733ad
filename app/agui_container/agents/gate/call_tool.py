"""Tools for an agent that is not the assistant: ``ctx.tools`` and ``ctx.call_tool``, with the policy and the journal.

Rules:
- A call that needs an answer ends the run with an interrupt, and so does a question of the agent's own. Once all of
  them have answers, the agent is called again from its beginning.
- That is a replay: a call that the journal knows returns or raises what it did, whichever run answered it, and is not
  run or asked for again. A call that was started and has no result was cut off.
- The answers to the agent's own questions stay in ``input.resume`` until the turn ends. If the agent refuses them with
  VALIDATION_ERROR, its questions stay open. An answer that is repeated after the turn has ended runs nothing.
- Calls that are running when another call needs an answer end first, so that no result is lost. After the end of the
  run no call starts.
- Without tools, servers and rules in the settings, and without questions, an agent's stream is passed on unchanged.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from functools import cached_property
from typing import Any

from ag_ui.core import Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome, RunStartedEvent
from msgspec import Struct
from msgspec.structs import replace

from agui_container.agents.as_agent import with_store
from agui_container.agents.gate.approval import with_demands
from agui_container.agents.gate.calls import CallNote, ModelToolCall, ToolResult, result_event
from agui_container.agents.gate.gate import ToolGate, finish_event, interrupts_of_calls
from agui_container.agents.gate.journal import Journal, TurnJournal
from agui_container.agents.gate.toolbox import Toolbox, gather_tools
from agui_container.ports import (
    CURRENT_RUN,
    Agent,
    Item,
    PendingResult,
    Policy,
    RunContext,
    RunInterrupted,
    Tool,
    ToolContent,
    ToolError,
    ToolSource,
    interrupts_of,
)
from agui_container.ports.agent import maybe_aclosing
from agui_container.ports.store import Store
from agui_container.ports.tool_calls import MAX_CALLS_AT_WORK
from agui_container.protocol.errors import AppError, ErrorCode, clip_message
from agui_container.protocol.strict_json import json_text
from agui_core.transcript import FAILED

UNSTORED = Journal(keeps_events=False)
"""Journal of a run whose calls need none."""

Work = Coroutine[Any, Any, ToolContent]


class AgentWithTools(Struct, frozen=True):
    """Implements ``ports.Agent``: an agent with the server's tools in its context.

    ``is_configured`` is True if the settings have tools, servers or rules.
    """

    agent: Agent
    sources: Sequence[ToolSource]
    policy: Policy
    journal: Journal
    is_configured: bool
    monotonic: Callable[[], float]

    def with_store(self, store: Store, depth: int = 0) -> "AgentWithTools":
        journal = self.journal.with_store(store, depth)
        return replace(self, agent=with_store(self.agent, store, depth), journal=journal)

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """Return the agent's own stream if no call of this run can need an answer, else a stream around it."""
        rules = with_demands(ctx.call_rules.with_policy(self.policy), input.forwarded_props)
        ctx = ctx if rules is ctx.call_rules else replace(ctx, call_rules=rules)
        if self.is_configured or rules.asks_always or input.resume or ctx.turn.notes:
            return self._run(input, ctx)

        def open_gate() -> ToolGate:
            return ToolGate(Toolbox(ctx.tools, {}, rules, self.monotonic), TurnJournal(UNSTORED, input, ctx), input)

        return self.agent.run(input, AgentCalls(ctx, ctx.tools, open_gate).make_context())

    async def _run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        journal, tools = await self.journal.open(input, ctx), tuple(ctx.tools.values())
        toolbox = await gather_tools(tools, self.sources, input.tools or (), self.monotonic, journal.ctx)
        gate = ToolGate(toolbox, journal, input)
        if journal.has_thread:
            gate.refuse_lost_answers()
        end = await gate.start()
        if end is not None:
            yield end
        elif not journal.is_over:
            changes = {"resume": list(journal.answers) or None, "messages": gate.history()}
            calls = AgentCalls(gate.ctx, gate.toolbox.server, lambda: gate)
            async with aclosing(calls.run(self.agent, input.model_copy(update=changes))) as items:
                async for item in items:
                    yield item


class AgentCalls:
    """The calls of ``ctx.call_tool`` in one run.

    ``open_gate`` is called before the first call, because most runs of an agent without tools make none.
    """

    def __init__(self, ctx: RunContext, tools: Mapping[str, Tool], open_gate: Callable[[], ToolGate]) -> None:
        self._ctx = ctx
        self._tools = tools
        self._open_gate = open_gate
        self._numbers: dict[tuple[str, str], int] = {}
        self._running: set[asyncio.Future[None]] = set()
        self._at_work = asyncio.Semaphore(MAX_CALLS_AT_WORK)
        self._questions: list[CallNote] = []
        self._errors: list[ToolError] = []
        self._in_threads: list[Future[ToolContent]] = []
        self._has_ended = False
        self._loop = asyncio.get_running_loop()

    def make_context(self) -> RunContext:
        """Return the context for the agent, and make it the current one of the task.

        It refers to this object and not the other way round, so that the end of a run frees both, and the input.
        """
        context = replace(self._ctx, tools=self._tools, call_tool=self.call)
        CURRENT_RUN.set(context)
        return context

    @cached_property
    def _gate(self) -> ToolGate:
        return self._open_gate()

    async def run(self, agent: Agent, input: RunAgentInput) -> AsyncGenerator[Item, None]:
        """Run the agent. End with the interrupts of its calls, if there are any."""
        journal, has_finished = self._gate.journal, False
        raised: Sequence[Interrupt] = ()
        try:
            async with maybe_aclosing(agent.run(input, self.make_context())) as items:
                async for item in items:
                    if isinstance(item, RunFinishedEvent):
                        await self._wait_for_calls()
                        if not self._questions:
                            has_finished = True
                            end = item.outcome
                            asked = end.interrupts if isinstance(end, RunFinishedInterruptOutcome) else ()
                            async with journal.ending(own=asked):
                                yield item
                    elif not isinstance(item, RunStartedEvent):  # the engine has sent it, and perhaps results after it
                        yield item
            await self._wait_for_calls()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised = interrupts_of(error)
            if not raised:
                raise await self._failure(error)  # noqa: B904 - it has its cause
            await self._wait_for_calls()
        finally:
            self._has_ended = True
            for waiting in tuple(self._in_threads):
                waiting.cancel()
        if not has_finished:  # otherwise the agent has ended the run itself
            calls = interrupts_of_calls(self._questions)
            own = [each for each in raised if each.id not in {call.id for call in calls}]
            async with journal.ending(self._questions, own):
                if calls or own:
                    yield finish_event(self._ctx, calls, own)

    async def _failure(self, error: BaseException) -> BaseException:
        """End the turn, unless the agent has refused an answer. The engine ends the turn of a cancelled run.

        Return the error that ends the run: AGENT_ERROR with the text of a failed call that the agent did not handle.
        """
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            return error
        if isinstance(error, AppError) and error.code is ErrorCode.VALIDATION_ERROR:
            await self._gate.journal.refuse_answers()
            return error
        await self._gate.journal.end()
        cause = next((each for each in self._errors if is_due_to(error, each)), error)
        if not isinstance(cause, ToolError):
            return error
        failure = AppError(ErrorCode.AGENT_ERROR, clip_message(str(cause)))
        failure.__cause__ = error
        return failure

    def call(
        self, name: str, arguments: Mapping[str, object] | None = None, *, call_id: str | None = None
    ) -> PendingResult:
        """Call a tool. Implements ``ports.ToolCaller``."""
        call = ModelToolCall(call_id or self._ctx.new_id(), name, json_text(arguments or {}))
        number = 0
        if call_id is None:
            number = self._numbers[call.key] = self._numbers.get(call.key, 0) + 1
        return CallResult(self._call(CallNote(call, self._gate.journal.id, number)), self._call_from_thread)

    def _call_from_thread(self, work: Coroutine[object, object, ToolContent]) -> ToolContent:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._in_threads.append(future)
        future.add_done_callback(self._in_threads.remove)
        return future.result()

    async def _call(self, note: CallNote) -> ToolContent:
        """Return the result of a call. One that a framework has announced is not announced again."""
        known = self._gate.journal.find(note.call, note.number)
        if known is not None and known.result is not None:
            return self._content_of(known.result)
        if self._has_ended:
            raise RunInterrupted(interrupts_of_calls(self._questions))
        for event in note.call.events() if note.number else ():
            self._ctx.emit(event)
        made = await self._make(note if note.number else self._gate.with_own_id(note))
        if made.result is None:
            self._questions.append(made)
            await asyncio.sleep(0)  # calls that the agent has made together with this one start
            await self._wait_for_calls()
            raise RunInterrupted(interrupts_of_calls(self._questions))
        return self._content_of(made.result)

    async def _make(self, note: CallNote) -> CallNote:
        """Make a call, and send its result. A call that the agent cancels gets one that says so."""
        running = self._loop.create_future()
        self._running.add(running)
        try:
            async with self._at_work:
                (made,) = await self._gate.make([note])
        except asyncio.CancelledError:
            self._send_result(self._gate.journal.cut_off(note))
            raise
        finally:
            self._running.remove(running)
            running.set_result(None)
        self._send_result(made)
        return made

    def _send_result(self, note: CallNote) -> None:
        if note.number and note.result is not None:
            self._ctx.emit(result_event(note.result.to_message(self._ctx.new_id(), note.id)))

    async def _wait_for_calls(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    def _content_of(self, result: ToolResult) -> ToolContent:
        """Return the content of a result. Raises ``ToolError`` for the result of a call that failed or was denied."""
        if (result.metadata or {}).get(FAILED):
            self._errors.append(ToolError(str(result.content).removeprefix("Error: ")))
            raise self._errors[-1]
        return result.content


def is_due_to(error: BaseException | None, cause: ToolError) -> bool:
    """Return True if an error is ``cause``, was raised because of it, or has its text, which frameworks pass on."""
    if error is None:
        return False
    if error is cause or getattr(error, "message", None) == str(cause):
        return True
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return any(is_due_to(each, cause) for each in (*parts, error.__cause__))


class CallResult(PendingResult):
    """Implements ``ports.PendingResult``. The work starts when its result is awaited or taken.

    ``run_on_loop`` runs it on the event loop of the run, and blocks the calling thread until it has ended.
    """

    def __init__(self, work: Work, run_on_loop: Callable[[Work], ToolContent]) -> None:
        self._work = work
        self._run_on_loop = run_on_loop

    def __await__(self) -> Generator[Any, Any, ToolContent]:
        return self._work.__await__()

    def send(self, value: object) -> object:
        return self._work.send(value)

    def throw(self, *error: Any) -> object:  # noqa: ANN401 - as in the base class
        return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    def result(self) -> ToolContent:
        """Raise ``RuntimeError`` in the thread of the event loop, which would wait for itself."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._run_on_loop(self._work)
        self._work.close()
        raise RuntimeError("Await ctx.call_tool(...) here: result() is for code in a thread.")
