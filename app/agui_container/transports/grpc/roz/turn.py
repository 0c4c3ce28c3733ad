"""One turn of a roz session: runs of the engine, and between them what the client answers.

Rule: the turn goes on when all of its open calls are answered: each tool of the client has a result or is late, each
approval has a decision, or another client of the thread has continued it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import orjson
from ag_ui.core import PROTOCOL_VERSION, ResumeEntry, RunAgentInput, ToolMessage
from msgspec import Struct

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.grpc.following import first_of, newer_run
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.interrupts import abandonment, decision, text_of
from agui_container.transports.grpc.options import GrpcOptions
from agui_container.transports.grpc.roz.events import TurnEvents
from agui_container.transports.grpc.roz.requests import late_message, tool_message
from agui_container.transports.grpc.roz.tools import Offered
from agui_container.transports.grpc.roz.wire import Responses, Wire

Say = Callable[[Responses], Awaitable[None]]


class TurnRequest(Struct, frozen=True):
    """A message to be answered.

    Attributes:
        message_id: what the client calls it.
        tools: the client's tools in this turn.
        size: bytes that have asked for it.
    """

    message_id: str
    run_input: RunAgentInput
    tools: Offered
    size: int


class Answers(Struct, frozen=True):
    """What the client has answered between two runs."""

    results: Sequence[ToolMessage]
    decisions: Sequence[ResumeEntry]


class Turn:
    """The answer to one message.

    Attributes:
        events: what the client is told.
        has_begun: whether the engine has taken the message.
        ended: set when the turn is over.
        is_half_closed: whether the client says nothing more.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the session hands over its parts
        self, request: TurnRequest, service: Service, caller: Caller, wire: Wire, options: GrpcOptions, say: Say
    ) -> None:
        self.events = TurnEvents(wire, request.message_id, request.tools, options.permissions, time.time)
        self.has_begun = False
        self.is_half_closed = False
        self.ended = asyncio.Event()
        self._request = request
        self._service = service
        self._caller = caller
        self._say = say
        self._run_id = request.run_input.run_id
        self._is_running = self._is_cancelled = False
        self._results: dict[str, ToolMessage] = {}
        self._decisions: dict[str, bool] = {}
        self._changed = asyncio.Event()

    async def run(self, index: int) -> None:
        """Answer, until there is nothing more to answer or the client has stopped it."""
        try:
            await self._say(self.events.begin(index))
            try:
                await self._follow(await self._admitted(self._request.run_input))
                while self.events.is_waiting:
                    reader = await self._continued()
                    if reader is None:
                        break
                    await self._follow(reader)
            except AppError as error:
                await self._say(self.events.failed(error))
            await self._say(self.events.complete())
        finally:
            self.ended.set()

    async def cancel(self) -> None:
        """Stop. Harmless when the turn is over."""
        self._is_cancelled = True
        self._changed.set()
        await self._cancel_run()

    def half_close(self) -> None:
        """The client says nothing more: what waits for it is left open."""
        self.is_half_closed = True
        self._changed.set()

    def give_result(self, result: pb.ToolResult) -> None:
        """Take the result of a client's tool. Raises ``AppError`` VALIDATION_ERROR for a call that does not wait."""
        if result.tool_call_id not in self.events.tool_requests or result.tool_call_id in self._results:
            raise unknown("tool_result", result.tool_call_id)
        self._results[result.tool_call_id] = tool_message(result)
        self._changed.set()

    def decide(self, decided: pb.PermissionDecision) -> None:
        """Take a decision. Raises ``AppError`` VALIDATION_ERROR for a call that does not wait."""
        if decided.tool_call_id not in self.events.approvals or decided.tool_call_id in self._decisions:
            raise unknown("permission_decision", decided.tool_call_id)
        self._decisions[decided.tool_call_id] = decided.approved
        self._changed.set()

    # --- runs ---

    async def _admitted(self, run_input: RunAgentInput) -> Subscription:
        self._run_id = run_input.run_id
        reader = await self._service.admit(run_input, self._caller, self._request.size)
        self.has_begun = self._is_running = True
        return reader

    async def _follow(self, reader: Subscription) -> None:
        self._is_running = True
        try:
            if self._is_cancelled:
                await self._cancel_run()
            async for batch in reader:
                responses: Responses = []
                for envelope in batch.envelopes():
                    responses += self.events.feed(envelope.type, orjson.loads(envelope.data))
                await self._say(responses)
        finally:
            self._is_running = False
            reader.close()

    async def _cancel_run(self) -> None:
        if not self._is_running:
            return
        try:
            await self._service.runs.cancel(self._caller, self._request.run_input.thread_id, self._run_id)
        except AppError as error:
            if error.code is not ErrorCode.RUN_NOT_FOUND:  # over by now
                raise

    # --- between runs ---

    async def _continued(self) -> Subscription | None:
        """The run that goes on; None where the client has stopped the turn, or says nothing more."""
        thread_id = self._request.run_input.thread_id
        newer = newer_run(self._service, self._caller, thread_id, self._run_id)
        answers = await first_of(self._answered(), newer)
        if isinstance(answers, str):
            await self._say(self.events.resolved({call_id: {"elsewhere": True} for call_id in self.events.approvals}))
            self._run_id = answers
            return await self._service.attach(self._caller, thread_id, answers, 0)
        if answers is None:
            await self._stopped()
            return None
        responses: Responses = []
        for result in answers.results:
            responses += self.events.answered(result.tool_call_id, text_of(result.content))
        outcomes = {call_id: {"approved": self._decisions[call_id]} for call_id in self.events.approvals}
        await self._say([*responses, *self.events.resolved(outcomes)])
        return await self._admitted(self._next_input(answers))

    async def _answered(self) -> Answers | None:
        """All answers; None where the turn is stopped before they are there."""
        loop = asyncio.get_running_loop()
        asked_at, events = loop.time(), self.events
        while not self._is_cancelled:
            missing = [request for call_id, request in events.tool_requests.items() if call_id not in self._results]
            if not missing and events.approvals.keys() <= self._decisions.keys():
                return Answers(
                    [self._results[call_id] for call_id in events.tool_requests],
                    [decision(it, approved=self._decisions[call_id]) for call_id, it in events.approvals.items()],
                )
            if self.is_half_closed:
                events.stop_reason = "tool_use"
                return None
            now = loop.time()
            for late in [it for it in missing if now >= asked_at + it.timeout_ms / 1000]:
                self._results[late.call_id] = late_message(late.call_id, late.timeout_ms)
            due = min((asked_at + it.timeout_ms / 1000 for it in missing), default=None)
            self._changed.clear()
            if due is None or due > now:
                await self._wait_until(due)
        return None

    async def _wait_until(self, due: float | None) -> None:
        try:
            async with asyncio.timeout_at(due):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _stopped(self) -> None:
        """The client wants no answer any more: approvals that are open would keep the thread from going on."""
        if not self._is_cancelled:
            return
        self.events.stop_reason = "cancelled"
        if self.events.approvals:
            entries = [abandonment(request) for request in self.events.approvals.values()]
            run_input = self._next_input(Answers((), entries), {"approvals": {"onDenial": "cancel"}})
            reader = await self._admitted(run_input)
            self._is_running = False
            try:
                async for _ in reader:
                    pass
            finally:
                reader.close()

    def _next_input(self, answers: Answers, props: dict[str, object] | None = None) -> RunAgentInput:
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


def unknown(kind: str, call_id: str) -> AppError:
    """The refusal of an answer that nothing waits for."""
    return AppError(ErrorCode.VALIDATION_ERROR, f"{kind}: no call '{call_id[:100]}' waits for it.")
