"""One turn of a roz session: runs of the engine, and the client's answers between them.

Rule: the turn continues once all of its open calls are answered. Then each tool of the client has a result or has
exceeded its timeout, and each approval has a decision. It also continues if another client has continued the thread:
the turn then follows the run of that client, and answers of its own client that came later are refused.
"""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence

from ag_ui.core import PROTOCOL_VERSION, ResumeEntry, RunAgentInput, ToolMessage
from msgspec import Struct

from agui_container.engine.admission.quota import Limit
from agui_container.engine.log.subscription import Subscription
from agui_container.engine.policy import ThreadCondition
from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.grpc.call import Call
from agui_container.transports.grpc.following import (
    attach_next,
    closed_calls,
    continue_run,
    find_latest_run,
    first_of,
    wait_for_next_run,
    wait_until,
)
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.interrupts import abandonment, decision, expired_requests, text_of
from agui_container.transports.grpc.options import GrpcOptions
from agui_container.transports.grpc.roz.events import TurnEvents
from agui_container.transports.grpc.roz.outcomes import CANCELLED, EXPIRED, UNKNOWN_ELSEWHERE, Outcome, client_outcome
from agui_container.transports.grpc.roz.requests import call_id_in, error_message, tool_message
from agui_container.transports.grpc.roz.tools import ToolsByName
from agui_container.transports.grpc.roz.wire import Responses, RozEncoder

SessionCall = Call[pb.SessionRequest, pb.SessionResponse]


class TurnRequest(Struct, frozen=True):
    """A message that a turn answers.

    Attributes:
        message_id: id of the message for the client.
        tools: the client's tools in this turn.
        message_size: bytes of the message.
        input_size: bytes of the whole input, with history and tools.
        has_history: True if the input has the session's history, which a thread with messages must not get.
    """

    message_id: str
    run_input: RunAgentInput
    tools: ToolsByName
    message_size: int
    input_size: int
    has_history: bool


class PermissionAnswer(Struct, frozen=True):
    """The answer to an approval request: the client's, or the server's if the approval has expired."""

    outcome: Outcome
    entry: ResumeEntry


class TurnAnswers(Struct, frozen=True):
    """Answers of the client between two runs."""

    results: Sequence[ToolMessage]
    decisions: Sequence[ResumeEntry]


class SessionTurn:
    """The answer to one message.

    Attributes:
        events: translation of the turn's events to responses.
        has_begun: True once the engine has admitted the message.
        ended: set when the turn has ended.
        is_half_closed: True if the client sends no more requests.
    """

    def __init__(
        self, request: TurnRequest, service: Service, call: SessionCall, wire: RozEncoder, options: GrpcOptions
    ) -> None:
        self.events = TurnEvents(wire, request.message_id, request.tools, options.permissions, time.time)
        self.has_begun = False
        self.is_half_closed = False
        self.ended = asyncio.Event()
        self._wire = wire
        self._request = request
        self._answers_size = 0
        self._service = service
        self._call = call
        self._caller = call.caller
        self._thread_id = request.run_input.thread_id
        self._run_id = request.run_input.run_id
        self._is_running = self._is_cancelled = False
        self._results: dict[str, ToolMessage] = {}
        self._failed_calls: set[str] = set()
        """Ids of the calls whose results come from the server, because the client has not run them."""
        self._decisions: dict[str, PermissionAnswer] = {}
        self._changed = asyncio.Event()

    @property
    def size(self) -> int:
        """Bytes of the message and of the client's answers in this turn."""
        return self._request.message_size + self._answers_size

    async def run(self, index: int) -> None:
        """Run the turn until no call waits for the client, or until the client cancels the turn."""
        try:
            await self._call.send(self.events.begin(index))
            try:
                await self._begin()
                while self.events.is_waiting and await self._continue():
                    pass
            except AppError as error:
                await self._call.send(self.events.fail(error))
            await self._call.send(self.events.complete())
        finally:
            self.ended.set()

    async def cancel(self) -> None:
        """Cancel the turn. Without effect after its end."""
        self._is_cancelled = True
        self._changed.set()
        await self._cancel_run()

    def half_close(self) -> None:
        """Note that the client sends no more requests. Calls that wait for the client stay open."""
        self.is_half_closed = True
        self._changed.set()

    def give_result(self, result: pb.ToolResult) -> None:
        """Store the result of a client's tool. Raises ``AppError`` VALIDATION_ERROR for a call that is not waiting."""
        if result.tool_call_id not in self.events.tool_requests or result.tool_call_id in self._results:
            raise unknown_call_error("tool_result", result.tool_call_id)
        self._results[result.tool_call_id] = tool_message(result)
        self._answers_size += result.ByteSize()
        self._changed.set()

    def decide(self, permission: pb.PermissionDecision, edited: Mapping[str, object] | None) -> None:
        """Store a decision, with the edited arguments of the call.

        Raises:
            AppError: VALIDATION_ERROR for a call that is not waiting.
        """
        call_id, approvals = permission.tool_call_id, self.events.approvals
        if call_id not in approvals:
            call_id = call_id_in(call_id)
        if call_id not in approvals or call_id in self._decisions:
            raise unknown_call_error("permission_decision", call_id)
        entry = decision(approvals[call_id], is_approved=permission.approved, edited_arguments=edited)
        outcome = client_outcome(approvals[call_id].arguments, edited, is_approved=permission.approved)
        self._decisions[call_id] = PermissionAnswer(outcome, entry)
        self._answers_size += permission.ByteSize()
        self._changed.set()

    # --- runs ---

    async def _begin(self) -> None:
        """Run the agent with the message."""
        run_input = self._request.run_input
        condition = ThreadCondition(is_empty=self._request.has_history)
        subscription = await self._service.admit(run_input, self._caller, self._request.input_size, condition)
        self.has_begun = True
        await self._forward_events(run_input.run_id, subscription, [])

    async def _forward_events(
        self, run_id: str, subscription: Subscription, opening: Responses, *, is_following: bool = False
    ) -> None:
        """Forward the events of a run, after the responses ``opening``. A followed run is one of another client."""
        self._run_id, self._is_running = run_id, True
        try:
            if self._is_cancelled:
                await self._cancel_run()
            await self._call.send(opening)
            async for batch in subscription:
                if is_following:  # the first event is there, so the thread has the run's input
                    await self._call.send(await self._close_calls())
                    is_following = False
                await self._call.send_events(batch, self.events.feed)
        finally:
            self._is_running = False
            self._call.leave(subscription)

    async def _cancel_run(self) -> None:
        if not self._is_running:
            return
        try:
            await self._service.runs.cancel(self._caller, self._thread_id, self._run_id)
        except AppError as error:
            if error.code is not ErrorCode.RUN_NOT_FOUND:  # the run has ended in the meantime
                raise

    # --- between runs ---

    async def _continue(self) -> bool:
        """Forward the events of the next run. Returns False if the client has cancelled the turn or half-closed."""
        next_run = wait_for_next_run(self._service, self._caller, self._thread_id, self._run_id)
        answers = await first_of(self._wait_for_answers(), next_run)
        if answers is None:
            await self._abandon_approvals()
            return False
        next_id = answers if isinstance(answers, str) else await self._answer(answers)
        if next_id is not None:
            await self._follow(next_id)
        return True

    async def _answer(self, answers: TurnAnswers) -> str | None:
        """Continue with the client's answers. Returns the id of the next run if another client has been faster."""
        run_input = self._next_input(answers)
        subscription = await self._continue_run(run_input)
        if isinstance(subscription, str):
            return subscription
        responses: Responses = []
        for result in answers.results:
            responses += self.events.add_result(result.tool_call_id, text_of(result.content))
        outcomes = {call_id: self._decisions[call_id].outcome for call_id in self.events.approvals}
        responses += self.events.resolve(outcomes)
        self._results, self._decisions = {}, {}
        await self._forward_events(run_input.run_id, subscription, responses)
        return None

    async def _continue_run(self, run_input: RunAgentInput) -> Subscription | str:
        size = self._request.input_size + self._answers_size
        return await continue_run(self._service, self._caller, self._run_id, run_input, size)

    async def _follow(self, run_id: str) -> None:
        """Forward the events of a run of another client."""
        subscription = await attach_next(self._service, self._caller, self._thread_id, self._run_id, run_id)
        if subscription is None:
            return
        if self._is_cancelled:  # before the client has seen anything of this run
            self._call.leave(subscription)
            return
        opening = [*self._refuse_decisions(), *self.events.follow()]
        await self._forward_events(run_id, subscription, opening, is_following=True)

    def _refuse_decisions(self) -> Responses:
        """Refuse the client's decisions, because another client has continued the thread before them."""
        late, self._decisions = self._decisions, {}
        by_client = [call_id for call_id, answer in late.items() if answer.outcome is not EXPIRED]
        errors = [unknown_call_error("permission_decision", call_id) for call_id in by_client]
        return [response for error in errors for response in self._wire.session_rejected(error)]

    async def _close_calls(self) -> Responses:
        """Finish the client's calls that the thread no longer waits for. Results of the client for them are refused.

        A run that is not the thread's latest one closes no calls. The run that has closed them is followed after it.
        """
        thread = await self._service.threads.delta(self._caller, self._thread_id)
        with self._call.quota.acquire(Limit.BYTES_IN_FLIGHT, thread.size):
            if await find_latest_run(self._service, self._caller, self._thread_id) != self._run_id:
                return []
            calls = tuple(self.events.tool_requests)
            closed = await self._call.translate(thread.size, closed_calls, thread.messages, calls)
            del thread
        responses: Responses = []
        for call_id, result in closed.items():
            if self._results.pop(call_id, None) is not None and call_id not in self._failed_calls:
                responses += self._wire.session_rejected(unknown_call_error("tool_result", call_id))
            responses += self.events.add_result(call_id, result)
        return responses

    async def _wait_for_answers(self) -> TurnAnswers | None:
        """Wait for all answers. Returns None if the turn ends before they are complete."""
        loop = asyncio.get_running_loop()
        started_at, events = loop.time(), self.events
        while not self._is_cancelled:
            self._fail_calls(loop.time() - started_at)
            expiry = self._expire_approvals()
            missing = [request for call_id, request in events.tool_requests.items() if call_id not in self._results]
            if not missing and events.approvals.keys() <= self._decisions.keys():
                return TurnAnswers(
                    [self._results[call_id] for call_id in events.tool_requests],
                    [self._decisions[call_id].entry for call_id in events.approvals],
                )
            if self.is_half_closed:
                events.stop_reason = "tool_use"
                return None
            deadline = min((started_at + it.timeout_ms / 1000 for it in missing), default=math.inf)
            self._changed.clear()
            await wait_until(self._changed, min(deadline, loop.time() + expiry))
        return None

    def _expire_approvals(self) -> float:
        """Abandon the approvals that have expired. Returns the seconds until the next one expires."""
        expired, seconds = expired_requests(self.events.approvals.values(), time.time())
        self._decisions |= {it.call_id: PermissionAnswer(EXPIRED, abandonment(it)) for it in expired}
        return seconds

    def _fail_calls(self, seconds: float) -> None:
        """Store an error for each call that the client cannot run, or has not run in so many seconds."""
        for request in self.events.tool_requests.values():
            error = request.error
            if seconds >= request.timeout_ms / 1000:
                error = error or f"Error: the tool did not answer within {request.timeout_ms} ms."
            if error and request.call_id not in self._results:
                self._results[request.call_id] = error_message(request.call_id, error)
                self._failed_calls.add(request.call_id)

    async def _abandon_approvals(self) -> None:
        """Abandon the open approvals of a cancelled turn, because open approvals would block the thread."""
        if not self._is_cancelled:
            return
        is_ours = True
        if self.events.approvals:
            entries = [abandonment(request) for request in self.events.approvals.values()]
            run_input = self._next_input(TurnAnswers((), entries), {"approvals": {"onDenial": "cancel"}})
            is_ours = await self._run_unseen(run_input)
        await self._call.send(self.events.cancel(CANCELLED if is_ours else UNKNOWN_ELSEWHERE))

    async def _run_unseen(self, run_input: RunAgentInput) -> bool:
        """Continue with a run whose events are not forwarded. Returns False if another client has been faster."""
        subscription = await self._continue_run(run_input)
        if isinstance(subscription, str):
            return False
        try:
            async for _ in subscription:
                pass
        finally:
            subscription.close()
        return True

    def _next_input(self, answers: TurnAnswers, props: dict[str, object] | None = None) -> RunAgentInput:
        first = self._request.run_input
        return RunAgentInput(
            thread_id=first.thread_id,
            run_id=self._service.new_id(),
            protocol_version=PROTOCOL_VERSION,
            messages=list(answers.results),
            tools=first.tools,
            context=first.context,
            forwarded_props={**(first.forwarded_props or {}), **(props or {})},
            resume=list(answers.decisions) or None,
        )


def unknown_call_error(kind: str, call_id: str) -> AppError:
    """Return the error for an answer to a call that is not waiting."""
    return AppError(ErrorCode.VALIDATION_ERROR, f"{kind}: no call '{call_id[:100]}' waits for it.")
