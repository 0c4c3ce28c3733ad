"""One turn of a roz session: runs of the engine, and the client's answers between them.

Rule: the turn continues once all of its open calls are answered. Then each tool of the client has a result or has
exceeded its timeout, and each approval has a decision. It also continues if another client has continued the thread.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

import orjson
from ag_ui.core import PROTOCOL_VERSION, EventType, ResumeEntry, RunAgentInput, ToolMessage
from msgspec import Struct

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Batch
from agui_container.transports.grpc.call import Call
from agui_container.transports.grpc.following import first_of, wait_for_newer_run
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.interrupts import abandonment, decision, text_of
from agui_container.transports.grpc.options import GrpcOptions
from agui_container.transports.grpc.roz.events import TurnEvents
from agui_container.transports.grpc.roz.requests import late_message, tool_message
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
    """

    message_id: str
    run_input: RunAgentInput
    tools: ToolsByName
    message_size: int
    input_size: int


class PermissionAnswer(Struct, frozen=True):
    """The client's answer to an approval request."""

    approved: bool
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
        self._request = request
        self._answers_size = 0
        self._service = service
        self._call = call
        self._caller = call.caller
        self._run_id = request.run_input.run_id
        self._is_running = self._is_cancelled = self._is_following = False
        self._results: dict[str, ToolMessage] = {}
        self._decisions: dict[str, PermissionAnswer] = {}
        self._has_news = asyncio.Event()

    @property
    def size(self) -> int:
        """Bytes of the message and of the client's answers in this turn."""
        return self._request.message_size + self._answers_size

    async def run(self, index: int) -> None:
        """Run the turn until no call waits for the client, or until the client cancels the turn."""
        try:
            await self._call.send(self.events.begin(index))
            try:
                await self._forward_events(await self._admit(self._request.run_input))
                while self.events.is_waiting:
                    subscription = await self._continue()
                    if subscription is None:
                        break
                    await self._forward_events(subscription)
            except AppError as error:
                await self._call.send(self.events.fail(error))
            await self._call.send(self.events.complete())
        finally:
            self.ended.set()

    async def cancel(self) -> None:
        """Cancel the turn. Without effect after its end."""
        self._is_cancelled = True
        self._has_news.set()
        await self._cancel_run()

    def half_close(self) -> None:
        """Note that the client sends no more requests. Calls that wait for the client stay open."""
        self.is_half_closed = True
        self._has_news.set()

    def give_result(self, result: pb.ToolResult) -> None:
        """Store the result of a client's tool. Raises ``AppError`` VALIDATION_ERROR for a call that is not waiting."""
        if result.tool_call_id not in self.events.tool_requests or result.tool_call_id in self._results:
            raise unknown_call_error("tool_result", result.tool_call_id)
        self._results[result.tool_call_id] = tool_message(result)
        self._answers_size += result.ByteSize()
        self._has_news.set()

    def decide(self, permission: pb.PermissionDecision, edited: Mapping[str, object] | None) -> None:
        """Store a decision, with the edited arguments of the call.

        Raises:
            AppError: VALIDATION_ERROR for a call that is not waiting.
        """
        call_id = permission.tool_call_id
        if call_id not in self.events.approvals or call_id in self._decisions:
            raise unknown_call_error("permission_decision", call_id)
        approved = permission.approved
        entry = decision(self.events.approvals[call_id], approved=approved, edited_arguments=edited)
        self._decisions[call_id] = PermissionAnswer(approved, entry)
        self._answers_size += permission.ByteSize()
        self._has_news.set()

    # --- runs ---

    async def _admit(self, run_input: RunAgentInput) -> Subscription:
        self._run_id = run_input.run_id
        subscription = await self._service.admit(run_input, self._caller, self._request.input_size + self._answers_size)
        self.has_begun = self._is_running = True
        self._is_following = False
        return subscription

    async def _forward_events(self, subscription: Subscription) -> None:
        self._is_running = True
        try:
            if self._is_cancelled:
                await self._cancel_run()
            async for batch in subscription:
                await self._forward_batch(batch)
        finally:
            self._is_running = False
            self._call.leave(subscription)

    async def _forward_batch(self, batch: Batch) -> None:
        """Forward events. Results that another client has given are sent before the end of the run that used them."""
        if self._is_following and EventType.RUN_FINISHED in batch.types:
            before_end = batch._replace(types=batch.types[:-1], data=batch.data[:-1])
            await self._call.send_events(before_end, self.events.feed)
            await self._call.send(await self._results_of_others())
            batch = batch._replace(types=batch.types[-1:], data=batch.data[-1:])
        await self._call.send_events(batch, self.events.feed)

    async def _cancel_run(self) -> None:
        if not self._is_running:
            return
        try:
            await self._service.runs.cancel(self._caller, self._request.run_input.thread_id, self._run_id)
        except AppError as error:
            if error.code is not ErrorCode.RUN_NOT_FOUND:  # the run has ended in the meantime
                raise

    # --- between runs ---

    async def _continue(self) -> Subscription | None:
        """Return the events of the next run, or None if the client has cancelled the turn or half-closed the call."""
        thread_id = self._request.run_input.thread_id
        newer_run = wait_for_newer_run(self._service, self._caller, thread_id, self._run_id)
        answers = await first_of(self._wait_for_answers(), newer_run)
        if isinstance(answers, str):
            await self._call.send(self.events.follow())
            self._run_id, self._is_following = answers, True
            return await self._service.attach(self._caller, thread_id, answers, 0)
        if answers is None:
            await self._abandon_approvals()
            return None
        responses: Responses = []
        for result in answers.results:
            responses += self.events.add_result(result.tool_call_id, text_of(result.content))
        decisions = {call_id: self._decisions[call_id].approved for call_id in self.events.approvals}
        await self._call.send([*responses, *self.events.resolve(decisions)])
        return await self._admit(self._next_input(answers))

    async def _results_of_others(self) -> Responses:
        """Return the results that another client has given for the tools that this client was to run."""
        thread = await self._service.threads.delta(self._caller, self._request.run_input.thread_id)
        responses: Responses = []
        for message in (orjson.loads(stored.data) for stored in thread.messages):
            if message["role"] == "tool" and message["toolCallId"] in self.events.tool_requests:
                responses += self.events.add_result(message["toolCallId"], text_of(message["content"]))
        return responses

    async def _wait_for_answers(self) -> TurnAnswers | None:
        """Wait for all answers. Returns None if the turn ends before they are complete."""
        loop = asyncio.get_running_loop()
        started_at, events = loop.time(), self.events
        while not self._is_cancelled:
            missing = [request for call_id, request in events.tool_requests.items() if call_id not in self._results]
            if not missing and events.approvals.keys() <= self._decisions.keys():
                return TurnAnswers(
                    [self._results[call_id] for call_id in events.tool_requests],
                    [self._decisions[call_id].entry for call_id in events.approvals],
                )
            if self.is_half_closed:
                events.stop_reason = "tool_use"
                return None
            now = loop.time()
            for late in [it for it in missing if now >= started_at + it.timeout_ms / 1000]:
                self._results[late.call_id] = late_message(late.call_id, late.timeout_ms)
            deadline = min((started_at + it.timeout_ms / 1000 for it in missing), default=None)
            self._has_news.clear()
            if deadline is None or deadline > now:
                await self._wait_until(deadline)
        return None

    async def _wait_until(self, deadline: float | None) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._has_news.wait()
        except TimeoutError:
            pass

    async def _abandon_approvals(self) -> None:
        """Abandon the open approvals of a cancelled turn, because open approvals would block the thread."""
        if not self._is_cancelled:
            return
        self.events.stop_reason = "cancelled"
        if self.events.approvals:
            entries = [abandonment(request) for request in self.events.approvals.values()]
            run_input = self._next_input(TurnAnswers((), entries), {"approvals": {"onDenial": "cancel"}})
            subscription = await self._admit(run_input)
            self._is_running = False
            try:
                async for _ in subscription:
                    pass
            finally:
                subscription.close()

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
