"""``kontekst.AgentService``: one call is one run, from its start command to completed, cancelled or failed.

Rule: only I/O is here; ``requests`` and ``events`` translate. A client that drops its call leaves the run to
``AGUI_ON_DISCONNECT``, and open proposals to any other client of the thread.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence

import orjson
from ag_ui.core import ResumeEntry, RunAgentInput
from grpclib.const import Handler as Method

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.grpc.call import Admission, Call, method
from agui_container.transports.grpc.following import first_of, newer_run
from agui_container.transports.grpc.gen.kontekst.kontekst_pb2 import RunCommand, RunEvent, StartRunCommand
from agui_container.transports.grpc.interrupts import abandonment, decision
from agui_container.transports.grpc.kontekst.events import RunEvents
from agui_container.transports.grpc.kontekst.requests import first_input, next_input

DEFAULT_AGENT = "default"

RunCall = Call[RunCommand, RunEvent]

logger = logging.getLogger(__name__)


class AgentService:
    """``kontekst.AgentService``.

    Args:
        agent_names: the names that a client may use for this server's agent, besides ``default`` and none.
    """

    def __init__(self, service: Service, admission: Admission, agent_names: Collection[str]) -> None:
        self._service = service
        self._admission = admission
        self._agent_names = (DEFAULT_AGENT, *agent_names)

    def __mapping__(self) -> dict[str, Method]:
        return {"/kontekst.AgentService/Run": method(self.run, self._admission, RunCommand, RunEvent)}

    async def run(self, call: RunCall) -> None:
        """Serve one call. Raises ``AppError`` VALIDATION_ERROR for one that does not begin with a start command."""
        command = await call.receive()
        if command is None:
            return
        if command.WhichOneof("command") != "start":
            raise AppError(ErrorCode.VALIDATION_ERROR, "The first command must be start.")
        start, new_id = command.start, self._service.new_id
        name = start.agent_name or DEFAULT_AGENT
        events = RunEvents(new_id(), start.session_id or new_id(), name)
        if name not in self._agent_names:
            known = ", ".join(dict.fromkeys(self._agent_names))
            await call.send(events.failed(f"There is no agent named '{name[:64]}'; known are {known}."))
            return
        await RunSession(call, self._service, start, events).serve()


class RunSession:
    """One run and the commands that come while it goes on."""

    def __init__(self, call: RunCall, service: Service, start: StartRunCommand, events: RunEvents) -> None:
        self._call = call
        self._service = service
        self._start = start
        self._events = events
        self._thread_id = events.session_id
        self._run_id = events.run_id
        self._decisions: dict[str, ResumeEntry] = {}
        self._changed = asyncio.Event()
        self._is_cancelled = self._is_half_closed = False

    async def serve(self) -> None:
        """Run, and listen meanwhile."""
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listen(), name="kontekst commands")
            try:
                await self._run()
            except AppError as error:
                await self._call.send(self._events.failed(error.message))
            finally:
                listening.cancel()

    # --- the run ---

    async def _run(self) -> None:
        run_input = first_input(self._start, self._thread_id, self._run_id, self._service.new_id())
        reader = await self._admitted(run_input)
        await self._call.send([self._events.begin()])
        await self._follow(reader)
        while self._events.asking:
            reader = await self._continued()
            await self._follow(reader)

    async def _admitted(self, run_input: RunAgentInput) -> Subscription:
        self._run_id = run_input.run_id
        return await self._service.admit(run_input, self._call.caller, self._start.ByteSize())

    async def _follow(self, reader: Subscription) -> None:
        try:
            async for batch in reader:
                events: list[RunEvent] = []
                for envelope in batch.envelopes():
                    events += self._events.feed(envelope.type, orjson.loads(envelope.data))
                await self._call.send(events)
                if self._is_cancelled:
                    await self._cancel_run()
        finally:
            reader.close()

    async def _continued(self) -> Subscription:
        """The run that goes on with the decisions: the client's, or one that another client of the thread began."""
        asked = self._events.asking
        newer = newer_run(self._service, self._call.caller, self._thread_id, self._run_id)
        answered = await first_of(self._answers(), newer)
        if isinstance(answered, str):
            self._run_id = answered
            self._events.decided([decision(request, approved=True) for request in asked.values()])
            return await self._service.attach(self._call.caller, self._thread_id, answered, 0)
        await self._call.send(self._events.decided(answered))
        return await self._admitted(next_input(self._start, self._thread_id, self._service.new_id(), answered))

    async def _answers(self) -> Sequence[ResumeEntry]:
        """An answer to each call that was proposed. A client that cancels or says nothing more wants none of them."""
        asking = self._events.asking
        while not asking.keys() <= self._decisions.keys():
            if self._is_cancelled or self._is_half_closed:
                self._is_cancelled = False  # the run that takes these answers ends as cancelled by itself
                return [abandonment(request) for request in asking.values()]
            self._changed.clear()
            await self._changed.wait()
        return [self._decisions[call_id] for call_id in asking]

    # --- commands ---

    async def _listen(self) -> None:
        while (command := await self._call.receive()) is not None:
            await self._hear(command)
            self._changed.set()
        self._is_half_closed = True
        self._changed.set()

    async def _hear(self, command: RunCommand) -> None:
        match command.WhichOneof("command"):
            case "approve_tool":
                self._decide(command.approve_tool.call_id, approved=True)
            case "deny_tool":
                self._decide(command.deny_tool.call_id, approved=False, reason=command.deny_tool.reason)
            case "cancel":
                self._is_cancelled = True
                await self._cancel_run()
            case other:
                logger.info("kontekst command ignored command=%s", other)

    def _decide(self, call_id: str, *, approved: bool, reason: str = "") -> None:
        """Note a decision. One for a call that does not wait, or was decided already, changes nothing."""
        request = self._events.asking.get(call_id)
        if request is None or call_id in self._decisions:
            logger.info("kontekst decision ignored call=%s", call_id[:100])
            return
        self._decisions[call_id] = decision(request, approved=approved, reason=reason)

    async def _cancel_run(self) -> None:
        if self._events.asking or self._events.ended:
            return
        try:
            await self._service.runs.cancel(self._call.caller, self._thread_id, self._run_id)
        except AppError as error:
            if error.code is not ErrorCode.RUN_NOT_FOUND:  # not begun, or over
                raise
