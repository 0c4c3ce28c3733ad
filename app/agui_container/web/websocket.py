"""``/ws``: any number of runs and commands per connection, one run streaming at a time.

Rules:

- A text frame is a run input or a command. A malformed one is answered by an error, and the connection continues.
- Frames are executed in the order in which they arrive, except ``cancel``, ``ping`` and ``capabilities``. A cancel
  waits only for the run that it names, or without ids while the connection has no open run of its own.
- Runs do not interleave. Their events are sent one run after the other, in the order in which they were added.
- The current run is the first open run that this connection started, or without one the run that it used last. A cancel
  without ids means the current run while it is open and its own, and an attach without ids the thread of it.
- When the client has left, waiting frames are executed only if they change something. Other answers have no reader.
- A frame that arrives after the connection's token has expired is answered by an error, and the connection is closed.
- A GET that is no handshake gets the refusal that a handshake would get, else status 426. A browser hides the status
  and the body of a refused handshake, so pages read them here.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, MutableMapping
from functools import partial
from http import HTTPStatus
from typing import Any

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agui_container.engine.engine import Engine
from agui_container.ports import Caller
from agui_container.ports.records import RunKey
from agui_container.protocol.envelope import Batch
from agui_container.protocol.errors import AppError, ErrorCode, validation_error
from agui_container.protocol.parser import CommandRequest, MalformedRequest, RunRequest
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.run.policy import OnBusy
from agui_container.run.subscription import Subscription
from agui_container.web.authentication import CallerAuthentication
from agui_container.web.caller_middleware import AGENT, BEARER_PROTOCOL, caller_of
from agui_container.web.error_responses import internal_error
from agui_container.web.formats import is_legacy_client, needs_reduction, reduced
from agui_container.web.requests import answer_command, check_size, parse_body
from agui_container.web.websocket_output import FrameWriter
from agui_core.commands import Attach, Cancel, Capabilities, Ping, ReadCommand

WS = "/ws"

MAX_PENDING = 16
"""Frames that may wait for execution. The connection is not read while so many wait."""

MAX_WAITING = 16
"""Runs that may wait for their turn on one connection."""

ImmediateCommand = Cancel | Ping | Capabilities
"""Commands that do not wait for earlier frames."""

logger = logging.getLogger(__name__)


def routes(
    service: Engine, authentication: CallerAuthentication, *, max_body: int, by_agent: bool = False
) -> list[BaseRoute]:
    """With ``by_agent`` each agent has a path of its own, too."""

    async def socket(websocket: WebSocket) -> None:
        offered = websocket.scope.get("subprotocols", ())
        check_expiry = partial(authentication.check_expiry, caller_of(websocket))
        await websocket.accept(BEARER_PROTOCOL if BEARER_PROTOCOL in offered else None)
        await WebSocketConnection(websocket, service, check_expiry, max_body=max_body).serve()

    async def explain_refusal(_: Request) -> Response:
        message = "This path takes the handshake of a WebSocket only"
        raise HTTPException(HTTPStatus.UPGRADE_REQUIRED, message, {"Upgrade": "websocket"})

    paths = [WS, AGENT + WS] if by_agent else [WS]
    return [route for path in paths for route in (WebSocketRoute(path, socket), Route(path, explain_refusal))]


class WebSocketConnection:
    """One accepted socket. One task reads frames, one executes them in order, and one streams runs."""

    def __init__(
        self,
        websocket: WebSocket,
        service: Engine,
        check_expiry: Callable[[], None],
        *,
        max_body: int,
    ) -> None:
        self._websocket = websocket
        self._caller = caller_of(websocket)
        self._service = service
        self._check_expiry = check_expiry
        self._max_body = max_body
        self._output = FrameWriter(websocket)
        self._runs = SocketRuns(service, self._caller, self._output)
        self._pending: asyncio.Queue[AgentRequest | None] = asyncio.Queue(MAX_PENDING)
        """Requests in order. None is behind the last one."""
        self._pending_runs: list[str] = []
        """Ids of the runs among them."""
        self._immediate_slots = asyncio.Semaphore(MAX_PENDING)

    async def serve(self) -> None:
        """Serve until the client disconnects. Runs that are open at that time follow ``AGUI_ON_DISCONNECT``."""
        try:
            async with asyncio.TaskGroup() as tasks:
                streaming = tasks.create_task(self._runs.stream())
                async with asyncio.TaskGroup() as executing:
                    executing.create_task(self._execute_in_order())
                    while (request := await self._read()) is not None:
                        await self._begin(request, executing)
                    await self._pending.put(None)
                streaming.cancel()
        finally:
            self._runs.close()

    # --- reading ---

    async def _read(self) -> AgentRequest | None:
        """Return the next request, or None at the end of the connection."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                self._output.has_left = True
                return None
            try:
                self._check_expiry()
            except AppError as error:
                await self._output.close(error)
                return None
            try:
                return await self._parse(pop_body(message))
            except AppError as error:
                await self._output.send_error(error, id=error.frame_id if isinstance(error, MalformedRequest) else None)
            except Exception:
                logger.exception("websocket frame parsing failed")
                await self._output.send_error(internal_error())

    async def _parse(self, body: bytes | None) -> AgentRequest:
        if body is None:
            raise validation_error("Frames must be text.")
        check_size(len(body), self._max_body)
        return (await parse_body(body)).for_agent(self._websocket.path_params.get("agent"))

    # --- order ---

    async def _begin(self, request: AgentRequest, tasks: asyncio.TaskGroup) -> None:
        """Execute a request at once, or queue it."""
        if self._is_immediate(request):
            await self._immediate_slots.acquire()
            task = tasks.create_task(self._execute(request))
            task.add_done_callback(lambda _: self._immediate_slots.release())
            return
        if isinstance(request, RunRequest):
            self._pending_runs.append(request.run_input.run_id)
        await self._pending.put(request)

    def _is_immediate(self, request: AgentRequest) -> bool:
        if isinstance(request, RunRequest) or not isinstance(request.command, ImmediateCommand):
            return False
        return not isinstance(request.command, Cancel) or self._runs.may_cancel_now(request.command, self._pending_runs)

    async def _execute_in_order(self) -> None:
        while (request := await self._pending.get()) is not None:
            if isinstance(request, RunRequest):
                self._pending_runs.remove(request.run_input.run_id)
            await self._execute(request)

    # --- execution ---

    async def _execute(self, request: AgentRequest) -> None:
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
        command = request.command
        if isinstance(command, Ping):
            await self._output.send_control("pong", id=request.frame_id)
            return
        if isinstance(command, Cancel | Attach):
            command = self._runs.with_ids(command)
        result = await answer_command(self._service, command, self._caller)
        if isinstance(command, Attach):
            await self._runs.attach(command, is_of_legacy_client=is_legacy_client(request))
        await self._output.send_result(request, result)


def pop_body(message: MutableMapping[str, Any]) -> bytes | None:
    """Take the bytes of a text frame out of its message. The text may take four times as much memory as its bytes."""
    text: str | None = message.pop("text", None)
    return None if text is None else text.encode()


def request_ids(request: AgentRequest) -> dict[str, object]:
    if isinstance(request, RunRequest):
        return {"threadId": request.run_input.thread_id, "runId": request.run_input.run_id}
    return {"id": request.frame_id}


# --- runs of a connection ---------------------------------------------------------------------------------------------


class SocketRun(Struct, frozen=True):
    """A run whose events have not all been sent."""

    subscription: Subscription
    is_own: bool
    is_of_legacy_client: bool

    @property
    def is_open(self) -> bool:
        return not self.subscription.run.log.has_ended

    @property
    def key(self) -> RunKey:
        return self.subscription.run.key


class SocketRuns:
    def __init__(self, service: Engine, caller: Caller, output: FrameWriter) -> None:
        self._service = service
        self._caller = caller
        self._output = output
        self._runs: list[SocketRun] = []
        """Runs that stream or wait to. The first one streams."""
        self._added = asyncio.Semaphore(0)
        """Counts the runs that wait to stream."""
        self._last: RunKey | None = None
        """The run that was started or attached to last."""

    # --- events ---

    async def stream(self) -> None:
        with contextlib.suppress(WebSocketDisconnect):  # a failure would cancel the execution of waiting frames
            while True:
                await self._added.acquire()
                await self._send_run(self._runs[0])
                self._runs.pop(0).subscription.close()

    async def _send_run(self, run: SocketRun) -> None:
        run.subscription.push_to(partial(self._push, run))
        try:
            async for batch in run.subscription:
                await self._output.send_events(await reduced(batch) if run.is_of_legacy_client else batch)
        except AppError as error:  # the run cannot be read any further now, but it may continue
            _, thread_id, run_id = run.key
            await self._output.send_error(error, threadId=thread_id, runId=run_id)

    def _push(self, run: SocketRun, batch: Batch) -> bool:
        return not (run.is_of_legacy_client and needs_reduction(batch)) and self._output.push(batch)

    def close(self) -> None:
        for run in self._runs:
            run.subscription.close()
        self._runs.clear()

    # --- starting and attaching ---

    async def start(self, request: RunRequest) -> None:
        """Admit a run and queue its events.

        ``AGUI_ON_BUSY`` decides about a run that arrives while another one is open on this connection, also if their
        threads differ. If the connection already reads the run, nothing happens, so that its events are sent once.

        Raises:
            AppError: THREAD_BUSY, or as raised by ``Engine.admit``.
        """
        run_input = request.run_input
        local_run = self._service.runs.find_local(self._caller, run_input.thread_id, run_input.run_id)
        if any(run.subscription.run is local_run for run in self._runs):
            return
        open_runs = [run.key for run in self._runs if run.is_open]
        on_busy = self._service.busy_choice(run_input)
        if open_runs and on_busy is OnBusy.REJECT:
            raise AppError(ErrorCode.THREAD_BUSY, "Another run is streaming on this connection.")
        self._check_capacity()
        before, self._last = self._last, RunKey(self._caller.owner, run_input.thread_id, run_input.run_id)
        try:
            subscription = await self._service.admit(run_input, self._caller, request.size)
        except BaseException:
            self._last = before
            raise
        self._add(SocketRun(subscription, is_own=True, is_of_legacy_client=is_legacy_client(request)))
        if on_busy is OnBusy.INTERRUPT:
            for key in reversed(open_runs):
                with contextlib.suppress(AppError):  # the run has ended in the meantime
                    await self._service.runs.cancel(self._caller, key.thread_id, key.run_id)

    async def attach(self, command: Attach, *, is_of_legacy_client: bool) -> None:
        """Queue the events of a run. Raises ``AppError`` THREAD_BUSY, or as ``attach`` of the engine."""
        self._check_capacity()
        subscription = await self._service.attach(self._caller, command.thread_id, command.run_id, command.after)
        self._add(SocketRun(subscription, is_own=False, is_of_legacy_client=is_of_legacy_client))

    def _check_capacity(self) -> None:
        if len(self._runs) > MAX_WAITING:
            raise AppError(ErrorCode.THREAD_BUSY, "Too many runs wait on this connection.")

    def _add(self, added: SocketRun) -> None:
        if any(run.subscription.run is added.subscription.run for run in self._runs):
            added.subscription.close()
            raise AppError(ErrorCode.THREAD_BUSY, "This run is streaming on this connection already.")
        self._runs.append(added)
        self._last = added.key
        self._added.release()

    # --- the current run ---

    def may_cancel_now(self, command: Cancel, waiting: Collection[str]) -> bool:
        """True if a cancel need not wait for earlier requests: its run is open, or is not among those that wait."""
        return self._own_run() is not None if has_no_ids(command) else command.run_id not in waiting

    def with_ids(self, command: Cancel | Attach) -> Cancel | Attach:
        """Return the command with the ids that it refers to on this connection. Raises ``AppError`` RUN_NOT_FOUND."""
        if not has_no_ids(command):
            return command
        key = self._own_run()
        if isinstance(command, Attach):
            if (key := key or self._last) is None:
                raise AppError(ErrorCode.RUN_NOT_FOUND, "This connection has had no run; name a threadId or a runId.")
            return command.model_copy(update={"thread_id": key.thread_id})
        if key is None:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "This connection has started no run that is still open.")
        return command.model_copy(update={"thread_id": key.thread_id, "run_id": key.run_id})

    def _own_run(self) -> RunKey | None:
        for run in self._runs:
            if run.is_own and run.is_open:
                return run.key
        if self._last is None or any(run.key == self._last for run in self._runs):
            return None
        in_admission = self._service.runs.find_local(self._caller, self._last.thread_id, self._last.run_id)
        return None if in_admission is None or in_admission.log.has_ended else self._last


def has_no_ids(command: Cancel | Attach) -> bool:
    return command.thread_id is None and command.run_id is None
