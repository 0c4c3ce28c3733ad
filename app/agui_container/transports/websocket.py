"""Runs over a WebSocket: any number of runs and commands per connection, one run streaming at a time.

Rules:

- Frames are executed in the order in which they arrive, except ``cancel``, ``ping`` and ``capabilities``. A cancel
  waits only for the run that it names, or without ids while the connection has no open run of its own.
- When the client has left, waiting frames are executed only if they change something. Other answers have no reader.

Incoming frames are read in ``websocket_input``, outgoing ones are sent in ``websocket_output``, and ``websocket_runs``
knows the runs of a connection.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.websockets import WebSocket, WebSocketDisconnect

from agui_container.engine.service import Service, View
from agui_container.protocol.commands import Attach, Cancel, Capabilities, Ping, ReadCommand
from agui_container.protocol.errors import AppError
from agui_container.protocol.parser import CommandRequest, RunRequest
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.transports.caller_middleware import caller_of
from agui_container.transports.commands import CommandResponder
from agui_container.transports.error_responses import internal_error
from agui_container.transports.websocket_input import FrameReader
from agui_container.transports.websocket_output import FrameWriter
from agui_container.transports.websocket_runs import SocketRuns

MAX_PENDING = 16
"""Frames that may wait for execution. The connection is not read while so many wait."""

ImmediateCommand = Cancel | Ping | Capabilities
"""Commands that do not wait for earlier frames."""

logger = logging.getLogger(__name__)


class WebSocketConnection:
    """One accepted socket. It reads frames and executes each in a task of its own; another task streams runs."""

    def __init__(
        self,
        websocket: WebSocket,
        service: Service,
        commands: CommandResponder,
        check_expiry: Callable[[], None],
        *,
        max_body: int,
    ) -> None:
        self._caller = caller_of(websocket)
        self._commands = commands
        self._output = FrameWriter(websocket)
        self._input = FrameReader(websocket, self._output, check_expiry, max_body)
        self._runs = SocketRuns(service, self._caller, self._output)
        self._pending: list[AgentRequest] = []
        """Requests that wait for their turn."""
        self._turn = asyncio.Lock()
        """Held while a request of those that wait for each other is executed. It is passed on in order."""
        self._pending_slots, self._immediate_slots = asyncio.Semaphore(MAX_PENDING), asyncio.Semaphore(MAX_PENDING)

    async def serve(self) -> None:
        """Serve until the client disconnects. Runs that are open at that time follow ``AGUI_ON_DISCONNECT``."""
        try:
            async with asyncio.TaskGroup() as streaming:
                stream = streaming.create_task(self._runs.stream())
                async with asyncio.TaskGroup() as executing:
                    while await self._begin_next(executing):
                        pass
                stream.cancel()
        finally:
            self._runs.close()

    # --- order ---

    async def _begin_next(self, tasks: asyncio.TaskGroup) -> bool:
        """Read a frame, and execute it at once or in its turn. Return False at the end of the connection."""
        if (frame := await self._input.read()) is None:
            return False
        with contextlib.ExitStack() as on_error:
            on_error.enter_context(frame.lease)
            if self._is_immediate(frame.request):
                await self._immediate_slots.acquire()
                task = tasks.create_task(self._execute(frame.request))
                task.add_done_callback(lambda _: self._immediate_slots.release())
            else:
                await self._pending_slots.acquire()
                self._pending.append(frame.request)
                task = tasks.create_task(self._execute_in_turn())
            task.add_done_callback(lambda _: frame.lease.release())
            on_error.pop_all()
        return True

    def _is_immediate(self, request: AgentRequest) -> bool:
        if isinstance(request, RunRequest) or not isinstance(request.command, ImmediateCommand):
            return False
        if not isinstance(request.command, Cancel):
            return True
        waiting = [other.run_input for other in self._pending if isinstance(other, RunRequest)]
        return self._runs.may_cancel_now(request.command, waiting)

    async def _execute_in_turn(self) -> None:
        async with self._turn:
            self._pending_slots.release()
            await self._execute(self._pending.pop(0))

    # --- execution ---

    async def _execute(self, request: AgentRequest) -> None:
        """Execute a request and send its result or its error, unless the client has left."""
        if self._output.has_left and isinstance(request, CommandRequest) and isinstance(request.command, ReadCommand):
            return
        try:
            await (self._runs.start(request) if isinstance(request, RunRequest) else self._execute_command(request))
        except WebSocketDisconnect:
            pass
        except AppError as error:
            await self._output.send_error(error, **request_ids(request))
        except Exception:
            logger.exception("websocket frame execution failed")
            await self._output.send_error(internal_error(), **request_ids(request))

    async def _execute_command(self, request: CommandRequest) -> None:
        if isinstance(request.command, Ping):
            await self._output.send_control("pong", id=request.frame_id)
        else:
            await self._output.send_result(request, self._answer(request))

    @asynccontextmanager
    async def _answer(self, request: CommandRequest) -> AsyncIterator[View]:
        command = request.command
        if isinstance(command, Cancel | Attach):
            command = self._runs.with_ids(command)
        async with self._commands.answer(command, self._caller) as result:
            if isinstance(command, Attach):
                await self._runs.attach(command)
            yield result


def request_ids(request: AgentRequest) -> dict[str, object]:
    """Return the ids of a request that an error frame repeats: those of the run, or the frame's own id."""
    if isinstance(request, RunRequest):
        return {"threadId": request.run_input.thread_id, "runId": request.run_input.run_id}
    return {"id": request.frame_id}
