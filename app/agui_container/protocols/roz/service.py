"""``roz.v1.AgentService``: sessions, and the observation of subagents.

Rule: translate only. Sources: proto/roz/v1/agent.proto. docs/grpc.md describes the translation of each message.
"""

import time
from contextlib import aclosing

from grpclib.const import Cardinality
from grpclib.const import Handler as Method

from agui_container.engine.engine import Engine
from agui_container.ports import Caller
from agui_container.ports.records import ThreadKey
from agui_container.protocol.errors import AppError, ErrorCode, suppress_errors
from agui_container.protocols.conversation.following import ThreadRuns, pause
from agui_container.protocols.gen import agent_pb2 as pb
from agui_container.protocols.grpc.call import Call, CallAdmission, check_id, method
from agui_container.protocols.roz.options import RozOptions
from agui_container.protocols.roz.server_messages import RozEncoder
from agui_container.protocols.roz.session import Session, SessionCall
from agui_container.protocols.roz.team import TeamEvents
from agui_container.run.subscription import Subscription

WatchCall = Call[pb.WatchTeamRequest, pb.TeamEvent]


class RozService:
    def __init__(self, service: Engine, admission: CallAdmission, options: RozOptions) -> None:
        self._service = service
        self._admission = admission
        self._options = options
        self._sessions: set[Session] = set()
        """Sessions whose calls are open."""

    def __mapping__(self) -> dict[str, Method]:
        session = method(self.stream_session, self._admission, pb.SessionRequest, pb.SessionResponse)
        team = method(self.watch_team, self._admission, pb.WatchTeamRequest, pb.TeamEvent, Cardinality.UNARY_STREAM)
        return {"/roz.v1.AgentService/StreamSession": session, "/roz.v1.AgentService/WatchTeam": team}

    async def stream_session(self, call: SessionCall) -> None:
        wire = RozEncoder(self._service.new_id, time.time)
        session = Session(call, self._service, self._options, wire)
        self._sessions.add(session)
        try:
            await session.serve()
        finally:
            self._sessions.remove(session)

    async def watch_team(self, call: WatchCall) -> None:
        """Stream the events of a run's subagents.

        If the task is a thread, the stream has its runs in order, and stays open for later ones until the thread is
        deleted. The thread of an open session can be watched before its first run.

        Raises:
            AppError: RUN_NOT_FOUND if the task is neither a run nor a thread.
        """
        task_id = (await call.receive_request()).task_id
        check_id("task_id", task_id)
        events = TeamEvents(task_id, time.time)
        if (run := await self._attach(call.caller, None, task_id)) is not None:
            await self._forward_events(run, events, call)
            return
        runs = ThreadRuns(self._service, call.caller, task_id)
        await self._wait_for_thread(runs, ThreadKey(call.caller.owner, task_id))
        async with aclosing(runs.iterate()) as run_ids:
            async for run_id in run_ids:
                if (run := await self._attach(call.caller, task_id, run_id)) is not None:
                    await self._forward_events(run, events, call)

    async def _wait_for_thread(self, runs: ThreadRuns, thread: ThreadKey) -> None:
        """Wait until the thread of an open session has a run. Raises ``AppError`` RUN_NOT_FOUND if there is none."""
        while await runs.latest() is None:
            if await runs.has_thread():
                return
            if all(session.thread != thread for session in self._sessions):
                raise AppError(ErrorCode.RUN_NOT_FOUND, "task_id: there is no such thread or run, or it is not kept.")
            await pause()

    async def _attach(self, caller: Caller, thread_id: str | None, run_id: str) -> Subscription | None:
        with suppress_errors(ErrorCode.RUN_NOT_FOUND):
            return await self._service.attach(caller, thread_id, run_id, 0)
        return None

    async def _forward_events(self, subscription: Subscription, events: TeamEvents, call: WatchCall) -> None:
        try:
            async for batch in subscription:
                await call.send_events(batch, events.feed)
        finally:
            subscription.close()
