"""``roz.v1.AgentService``: sessions, and the watching of subagents.

Rule: translate only. Sources: proto/roz/v1/agent.proto; docs/grpc.md says what becomes of each message.
"""

import time

import orjson
from grpclib.const import Cardinality
from grpclib.const import Handler as Method

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.grpc.call import Admission, Call, method
from agui_container.transports.grpc.following import newer_run
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.options import GrpcOptions, RozWire
from agui_container.transports.grpc.roz.session import Session, SessionCall
from agui_container.transports.grpc.roz.team import TeamEvents
from agui_container.transports.grpc.roz.wire import Wire

WatchCall = Call[pb.WatchTeamRequest, pb.TeamEvent]


class AgentService:
    """``roz.v1.AgentService``."""

    def __init__(self, service: Service, admission: Admission, options: GrpcOptions) -> None:
        self._service = service
        self._admission = admission
        self._options = options

    def __mapping__(self) -> dict[str, Method]:
        session = method(self.stream_session, self._admission, pb.SessionRequest, pb.SessionResponse)
        team = method(self.watch_team, self._admission, pb.WatchTeamRequest, pb.TeamEvent, Cardinality.UNARY_STREAM)
        return {"/roz.v1.AgentService/StreamSession": session, "/roz.v1.AgentService/WatchTeam": team}

    async def stream_session(self, call: SessionCall) -> None:
        """Serve one session. Raises ``AppError`` for messages that cannot be read."""
        wire = Wire(self._options.roz_wire, self._service.new_id, time.time)
        await Session(call, self._service, self._options, wire).serve()

    async def watch_team(self, call: WatchCall) -> None:
        """Show the subagents of a run, or of a thread's runs from its latest on, until nothing more is to come.

        Raises:
            AppError: RUN_NOT_FOUND for a task that is neither.
        """
        request = await call.receive()
        task_id = request.task_id if request else ""
        if not task_id:
            raise AppError(ErrorCode.VALIDATION_ERROR, "task_id: the id of a thread or a run is expected.")
        events = TeamEvents(task_id, has_approvals=self._options.roz_wire is not RozWire.V0_2)
        reader = await self._found(call.caller, task_id)
        is_thread = reader.run.key.run_id != task_id
        thread_id, run_id = reader.run.key.thread_id, reader.run.key.run_id
        while await self._watch(reader, events, call) and is_thread:
            run_id = await newer_run(self._service, call.caller, thread_id, run_id)
            reader = await self._service.attach(call.caller, thread_id, run_id, 0)

    async def _found(self, caller: Caller, task_id: str) -> Subscription:
        try:
            return await self._service.attach(caller, None, task_id, 0)
        except AppError as error:
            if error.code is not ErrorCode.RUN_NOT_FOUND:
                raise
        return await self._service.attach(caller, task_id, None, 0)

    async def _watch(self, reader: Subscription, events: TeamEvents, call: WatchCall) -> bool:
        """Show one run; whether it ended with something that a next run goes on from."""
        last: dict[str, object] = {}
        try:
            async for batch in reader:
                team: list[pb.TeamEvent] = []
                for envelope in batch.envelopes():
                    last = orjson.loads(envelope.data)
                    team += events.feed(envelope.type, last)
                await call.send(team)
        finally:
            reader.close()
        outcome = last.get("outcome")
        return isinstance(outcome, dict) and (
            outcome.get("type") == "interrupt" or bool(outcome.get("pendingToolCallIds"))
        )
