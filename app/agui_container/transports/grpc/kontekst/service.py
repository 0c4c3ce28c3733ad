"""``kontekst.AgentService``: one call is one run, from its start command to completed, cancelled or failed.

Rule: this module does I/O; ``requests`` and ``events`` translate. After a client has dropped its call,
``AGUI_ON_DISCONNECT`` decides about the run, and any other client of the thread can answer open proposals.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Sequence

from ag_ui.core import ResumeEntry
from grpclib.const import Handler as Method

from agui_container.engine.admission.quota import Limit
from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.log_values import format_fields
from agui_container.transports.grpc.call import Call, CallAdmission, method
from agui_container.transports.grpc.following import (
    attach_next,
    continue_run,
    first_of,
    wait_for_next_run,
    wait_until,
)
from agui_container.transports.grpc.gen.kontekst.kontekst_pb2 import RunCommand, RunEvent, StartRunCommand
from agui_container.transports.grpc.interrupts import abandonment, approval_request, decision, expired_requests
from agui_container.transports.grpc.kontekst.context import Row, ThreadCount, history_rows
from agui_container.transports.grpc.kontekst.events import RunEvents
from agui_container.transports.grpc.kontekst.requests import first_input, next_input
from agui_container.transports.grpc.messages import check_id

DEFAULT_AGENT = "default"

RunCall = Call[RunCommand, RunEvent]

logger = logging.getLogger(__name__)


class KontekstService:
    """``kontekst.AgentService``.

    Args:
        agent_names: names that a client may use for this server's agent, besides ``default`` and the empty name.
        reports_context: True if the agent reports its context. The messages of the thread are counted otherwise.
    """

    def __init__(
        self, service: Service, admission: CallAdmission, agent_names: Collection[str], *, reports_context: bool
    ) -> None:
        self._service = service
        self._admission = admission
        self._agent_names = (DEFAULT_AGENT, *agent_names)
        self._reports_context = reports_context

    def __mapping__(self) -> dict[str, Method]:
        return {"/kontekst.AgentService/Run": method(self.run, self._admission, RunCommand, RunEvent)}

    async def run(self, call: RunCall) -> None:
        """Serve one call.

        Raises:
            AppError: VALIDATION_ERROR if the first command is not a start command.
        """
        command = await call.receive()
        if command is None:
            return
        if command.WhichOneof("command") != "start":
            raise AppError(ErrorCode.VALIDATION_ERROR, "The first command must be start.")
        start, new_id = command.start, self._service.new_id
        name = start.agent_name or DEFAULT_AGENT
        events = RunEvents(new_id(), start.session_id or new_id(), name)
        if name not in self._agent_names:
            names = ", ".join(dict.fromkeys(self._agent_names))
            await call.send(events.fail(f"There is no agent named '{name[:64]}'; known are {names}."))
            return
        await RunSession(call, self._service, start, events, reports_context=self._reports_context).serve()


class RunSession:
    """One run, and the commands that arrive during it."""

    def __init__(
        self, call: RunCall, service: Service, start: StartRunCommand, events: RunEvents, *, reports_context: bool
    ) -> None:
        self._call = call
        self._reports_context = reports_context
        self._service = service
        self._start = start
        self._events = events
        self._thread_id = events.session_id
        self._run_id = events.run_id
        self._decisions: dict[str, ResumeEntry] = {}
        self._size = start.ByteSize()
        """Bytes of the start command and of the decisions."""
        self._changed = asyncio.Event()
        self._is_cancelled = self._is_half_closed = False

    async def serve(self) -> None:
        """Run the agent, and receive commands meanwhile.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if the commands are too many bytes in flight.
        """
        self._call.kept.resize(self._size)
        try:
            async with asyncio.TaskGroup() as tasks:
                receiving = tasks.create_task(self._receive_commands(), name="kontekst commands")
                try:
                    await self._run()
                except AppError as error:
                    await self._call.send(self._events.fail(error.message))
                finally:
                    receiving.cancel()
        except asyncio.CancelledError:
            await self._end_before_shutdown()
            raise

    async def _end_before_shutdown(self) -> None:
        """Send the last event of a run that waits for a decision while the server shuts down."""
        if self._call.is_open and not self._service.is_serving() and not self._events.has_ended:
            await self._call.send(self._events.fail("The server is shutting down."))

    # --- the run ---

    async def _run(self) -> None:
        check_id("session_id", self._thread_id)
        expired = await self._abandon_expired()
        self._events.count = ThreadCount(await self._count_history(), self._start.prompt)
        run_input = first_input(self._start, self._thread_id, self._run_id, self._service.new_id(), expired)
        subscription = await self._service.admit(run_input, self._call.caller, self._size)
        await self._forward_events(self._run_id, subscription, [self._events.begin()])
        while self._events.pending_approvals:
            await self._continue()

    async def _abandon_expired(self) -> Sequence[ResumeEntry]:
        """Abandon the approvals of the thread that have expired while no client waited. Returns the answers for that.

        The results of their calls are not sent, because they belong to an earlier run.
        """
        if not self._start.session_id:
            return []
        waiting = await self._service.threads.waiting(self._call.caller, self._thread_id)
        requests = [approval_request(interrupt.model_dump(by_alias=True)) for interrupt in waiting]
        expired, _ = expired_requests(requests, time.time())
        self._events.hidden_calls = [request.call_id for request in expired]
        return [abandonment(request) for request in expired]

    async def _count_history(self) -> Sequence[Row]:
        """Count the messages before the run, if the agent does not report its context."""
        if self._reports_context or not self._start.session_id:
            return []
        try:
            thread = await self._service.threads.delta(self._call.caller, self._thread_id)
        except AppError as error:
            if error.code is not ErrorCode.THREAD_NOT_FOUND:
                raise
            return []
        with self._call.quota.acquire(Limit.BYTES_IN_FLIGHT, thread.size):
            return await self._call.translate(thread.size, history_rows, thread.messages)

    async def _forward_events(self, run_id: str, subscription: Subscription, opening: Sequence[RunEvent]) -> None:
        """Forward the events of a run, after the events ``opening``."""
        self._run_id = run_id
        try:
            await self._call.send(opening)
            async for batch in subscription:
                await self._call.send_events(batch, self._events.feed)
                if self._is_cancelled:
                    await self._cancel_run()
        finally:
            self._call.leave(subscription)

    async def _continue(self) -> None:
        """Forward the events of the next run: with this client's answers, or begun by another client of the thread."""
        next_run = wait_for_next_run(self._service, self._call.caller, self._thread_id, self._run_id)
        answers = await first_of(self._wait_for_answers(), next_run)
        if answers is None:
            await self._abandon()
        elif isinstance(answers, str):
            await self._follow(answers)
        elif (next_id := await self._answer(answers)) is not None:
            await self._follow(next_id)

    async def _wait_for_answers(self) -> Sequence[ResumeEntry] | None:
        """Wait for an answer to each proposed call. Returns None if the client cancels or half-closes before.

        The client cancels a call by letting its approval expire.
        """
        pending_approvals, loop = self._events.pending_approvals, asyncio.get_running_loop()
        while not self._is_cancelled:
            expired, seconds = expired_requests(pending_approvals.values(), time.time())
            self._decisions |= {request.call_id: abandonment(request) for request in expired}
            if pending_approvals.keys() <= self._decisions.keys():
                return [self._decisions[call_id] for call_id in pending_approvals]
            if self._is_half_closed:
                return None
            self._changed.clear()
            await wait_until(self._changed, loop.time() + seconds)
        return None

    async def _answer(self, answers: Sequence[ResumeEntry]) -> str | None:
        """Continue with answers. Returns the id of the next run if another client has continued the thread before."""
        run_input = next_input(self._start, self._thread_id, self._service.new_id(), answers)
        subscription = await continue_run(self._service, self._call.caller, self._run_id, run_input, self._size)
        if isinstance(subscription, str):
            return subscription
        self._decisions = {}
        await self._forward_events(run_input.run_id, subscription, self._events.apply_decisions(answers))
        return None

    async def _abandon(self) -> None:
        """Abandon the proposed calls, because the client has cancelled the run. A run of another client continues."""
        self._is_cancelled = False  # a run with these answers ends as cancelled by itself
        entries = [abandonment(request) for request in self._events.pending_approvals.values()]
        if await self._answer(entries) is not None:
            await self._call.send(self._events.cancel())

    async def _follow(self, run_id: str) -> None:
        """Forward the events of a run of another client. The client's own decisions come too late."""
        subscription = await attach_next(self._service, self._call.caller, self._thread_id, self._run_id, run_id)
        if subscription is None:
            return
        if self._is_cancelled:  # before the client has seen anything of this run
            self._call.leave(subscription)
            return
        for call_id in self._decisions:
            log_ignored(call_id)
        self._decisions = {}
        self._events.apply_decisions([])  # only the results tell which calls the other client has approved
        await self._forward_events(run_id, subscription, [])

    # --- commands ---

    async def _receive_commands(self) -> None:
        while (command := await self._call.receive()) is not None:
            self._call.kept.resize(self._size + command.ByteSize())
            await self._handle(command)
            self._call.kept.resize(self._size)
            self._changed.set()
        self._is_half_closed = True
        self._changed.set()

    async def _handle(self, command: RunCommand) -> None:
        match command.WhichOneof("command"):
            case "approve_tool":
                self._decide(command.approve_tool.call_id, is_approved=True)
            case "deny_tool":
                self._decide(command.deny_tool.call_id, is_approved=False, reason=command.deny_tool.reason)
            case "cancel":
                self._is_cancelled = True
                await self._cancel_run()
            case other:
                logger.info("kontekst command ignored %s", format_fields({"command": other}))

    def _decide(self, call_id: str, *, is_approved: bool, reason: str = "") -> None:
        """Store a decision. A decision for an unknown call, or a second one, is ignored."""
        request = self._events.pending_approvals.get(call_id)
        if request is None or call_id in self._decisions:
            log_ignored(call_id)
            return
        self._decisions[call_id] = decision(request, is_approved=is_approved, reason=reason)
        self._size += len(call_id) + len(reason)

    async def _cancel_run(self) -> None:
        if self._events.pending_approvals or self._events.has_ended:
            return
        try:
            await self._service.runs.cancel(self._call.caller, self._thread_id, self._run_id)
        except AppError as error:
            if error.code is not ErrorCode.RUN_NOT_FOUND:  # the run has not begun, or has ended
                raise


def log_ignored(call_id: str) -> None:
    """Log a decision that comes too late, or for a call that does not wait."""
    logger.info("kontekst decision ignored %s", format_fields({"call": call_id[:100]}))
