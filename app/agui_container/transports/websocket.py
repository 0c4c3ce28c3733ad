"""Runs over a WebSocket: any number of runs and commands per connection, one run streaming at a time.

Rules:

- An incoming text frame is a run input or a command. An outgoing text frame is one bare AG-UI event or a control frame,
  which has ``control`` instead of ``type``.
- A malformed frame is answered by an error and does not affect the rest of the connection.
- A frame that arrives after the connection's token has expired is answered by an error, and the connection is closed.
- When the client has left, waiting frames are executed only if they change something. Other answers have no reader.
- Frames are executed in the order in which they arrive, except ``cancel``, ``ping`` and ``capabilities``. A cancel
  waits only for the run that it refers to: the run that it names, or without ids the open run that this connection
  started.
- No frame that can be smaller exceeds 32 KB, and at most 250 frames leave in any second. A single event is never
  delayed: a burst is free up to ``BURST`` frames, and then frames leave at ``RATE`` per second. Deltas that wait are
  merged.

Source: the limits of AgentCore (docs/architecture.md).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from ag_ui.core import RunAgentInput
from starlette.websockets import WebSocket, WebSocketDisconnect

from agui_container.engine.admission.quota import Limit
from agui_container.engine.log.subscription import Readable, Subscription
from agui_container.engine.policy import OnBusy, busy_choice
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import RunKey
from agui_container.protocol.commands import Attach, Cancel, Capabilities, Ping, ReadCommand
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import CommandRequest, MalformedRequest, RunRequest
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.protocol.wire.ws_frames import make_frames
from agui_container.transports.caller_middleware import caller_of, quota_of
from agui_container.transports.commands import CommandResponder, encode_result
from agui_container.transports.error_responses import internal_error
from agui_container.transports.request_body import check_size, parse_body
from agui_container.transports.websocket_frames import (
    Frame,
    control_fields,
    control_frame,
    error_frame,
    has_no_ids,
    request_ids,
)
from agui_container.transports.websocket_pacing import RateLimiter

MAX_WAITING = 16
"""Runs that may wait for their turn on one connection."""

MAX_PENDING = 16
"""Frames that may wait for execution. The connection is not read while so many wait."""

PAUSE_SECONDS = 1.0
"""Seconds for which a socket is not read after its caller has sent too many messages."""

FRAME_COPIES = 2
"""Copies of an outgoing frame that are in memory while the client does not take it: its text, and its bytes."""

ABNORMAL_CLOSURE = 1006
"""Close code of a connection that ended without a close frame (RFC 6455, section 7.4.1)."""

ImmediateCommand = Cancel | Ping | Capabilities
"""Commands that do not wait for earlier frames."""

logger = logging.getLogger(__name__)


class WebSocketConnection:
    """One accepted socket. It reads frames; one task executes them in order, and another one streams runs."""

    def __init__(  # noqa: PLR0913 - the route hands over each part
        self,
        websocket: WebSocket,
        service: Service,
        commands: CommandResponder,
        check_expiry: Callable[[], None],
        *,
        max_body: int,
        on_busy: OnBusy,
    ) -> None:
        self._websocket = websocket
        self._check_expiry = check_expiry
        self._quota = quota_of(websocket)
        self._service = service
        self._commands = commands
        self._caller: Caller = caller_of(websocket)
        self._max_body = max_body
        self._on_busy = on_busy
        self._with_seq = websocket.query_params.get("cursor") == "1"
        self._subscriptions: list[Subscription] = []
        self._input_in_admission: RunAgentInput | None = None
        """Input of the run that waits to be admitted."""
        self._own_runs: list[Readable] = []
        """Runs that this connection started and whose events have not all been sent."""
        self._last_thread_id: str | None = None
        """Thread of the last run that was started or attached on this connection."""
        self._tasks = asyncio.TaskGroup()
        self._stream_task: asyncio.Task[None] | None = None
        self._rate_limiter, self._send_lock = RateLimiter(asyncio.get_running_loop().time), asyncio.Lock()
        self._pending: list[Frame] = []
        self._pending_task: asyncio.Task[None] | None = None
        self._immediate_slots = asyncio.Semaphore(MAX_WAITING)
        self._has_left = False
        """True if the connection is closed. Frames that arrived before may still wait."""

    async def serve(self) -> None:
        """Serve until the client disconnects. Runs that are open at that time follow ``AGUI_ON_DISCONNECT``."""
        try:
            async with self._tasks:
                await self._receive_frames()
                await self._wait_for_pending()
                if self._stream_task:
                    self._stream_task.cancel()
        finally:
            # Break reference cycles: the group and a failed task refer to an exception whose frames refer to them.
            self._tasks, self._stream_task, self._pending_task = asyncio.TaskGroup(), None, None
            for subscription in self._subscriptions:
                subscription.close()
            for frame in self._pending:
                frame.lease.release()
            self._subscriptions.clear()

    # --- outgoing frames ---

    async def _stream(self) -> None:
        with contextlib.suppress(WebSocketDisconnect):  # a failure would cancel the execution of waiting frames
            while self._subscriptions:
                await self._send_run(self._subscriptions[0])
                subscription = self._subscriptions.pop(0)
                subscription.close()
                self._own_runs = [run for run in self._own_runs if run is not subscription.run]
        self._stream_task = None

    async def _send_run(self, subscription: Subscription) -> None:
        try:
            async for batch in subscription:
                for frame in make_frames(batch.envelopes(), with_seq=self._with_seq):
                    with await self._quota.acquire_when_free(Limit.BYTES_IN_FLIGHT, FRAME_COPIES * len(frame)):
                        await self._send_frame(frame)
        except AppError as error:  # the run cannot be read any further now, but it may continue
            _, thread_id, run_id = subscription.run.key
            await self._send_error(error, threadId=thread_id, runId=run_id)

    async def _send_control(self, frame: str) -> None:
        """Send a control frame.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if too many bytes are unread already.
        """
        with self._quota.acquire(Limit.BYTES_IN_FLIGHT, FRAME_COPIES * len(frame)):
            await self._send_frame(frame)

    async def _send_frame(self, frame: str) -> None:
        """Send one frame, after the frames that already wait to be sent.

        Raises:
            WebSocketDisconnect: the connection is closed, by the client or by the server.
        """
        async with self._send_lock:
            await self._rate_limiter.wait()
            try:
                await self._websocket.send_text(frame)
            except (RuntimeError, WebSocketDisconnect) as error:  # starlette and uvicorn raise one of them, once closed
                self._has_left = True
                raise WebSocketDisconnect(ABNORMAL_CLOSURE) from error

    # --- incoming frames ---

    async def _receive_frames(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                self._has_left = True
                return
            try:
                self._check_expiry()
            except AppError as error:
                await self._send_error(error)
                if not self._has_left:
                    await self._websocket.close(error.spec.ws_close, error.code)
                return
            if await self._may_handle():
                text = message.pop("text", None)
                body = None if text is None else text.encode()
                del text  # it may take four times as much memory as its bytes
                await self._handle_frame(body)

    async def _may_handle(self) -> bool:
        """Count a frame. If its caller has sent too many, answer with the error and read nothing for a while."""
        try:
            self._quota.count(Limit.MESSAGES_PER_SECOND)
        except AppError as error:
            await self._send_error(error)
            if not self._has_left:
                await asyncio.sleep(PAUSE_SECONDS)
            return False
        return True

    async def _handle_frame(self, body: bytes | None) -> None:
        """Parse a frame and execute it, or queue it. An error is answered; the connection and its runs continue."""
        with contextlib.ExitStack() as on_error:
            try:
                lease = on_error.enter_context(self._quota.acquire(Limit.BYTES_IN_FLIGHT, len(body or b"")))
                frame = Frame(await self._parse_frame(body), lease)
            except AppError as error:
                await self._send_error(error, id=error.frame_id if isinstance(error, MalformedRequest) else None)
                return
            except Exception:
                logger.exception("websocket frame parsing failed")
                await self._send_error(internal_error())
                return
            del body
            if self._is_immediate(frame.request):
                await self._immediate_slots.acquire()
                task = self._tasks.create_task(self._execute(frame.request))
                task.add_done_callback(lambda _: self._end_immediate(frame))
            else:
                if len(self._pending) >= MAX_PENDING:
                    await self._wait_for_pending()
                self._pending.append(frame)
                if self._pending_task is None:
                    self._pending_task = self._tasks.create_task(self._execute_pending())
            on_error.pop_all()  # the bytes count until the frame has been executed

    def _end_immediate(self, frame: "Frame") -> None:
        self._immediate_slots.release()
        frame.lease.release()

    def _is_immediate(self, request: AgentRequest) -> bool:
        if isinstance(request, RunRequest) or not isinstance(request.command, ImmediateCommand):
            return False
        if not isinstance(request.command, Cancel):
            return True
        pending = [frame.request for frame in self._pending]
        pending_runs = [other.run_input for other in pending if isinstance(other, RunRequest)]
        if has_no_ids(request.command):
            return self._own_run() is not None or (self._input_in_admission is None and not pending_runs)
        return all(run_input.run_id != request.command.run_id for run_input in pending_runs)

    async def _execute_pending(self) -> None:
        while self._pending:
            frame = self._pending.pop(0)
            with frame.lease:
                await self._execute(frame.request)
        self._pending_task = None

    async def _wait_for_pending(self) -> None:
        if self._pending_task is not None:
            await asyncio.wait([self._pending_task])

    async def _execute(self, request: AgentRequest) -> None:
        """Execute a request and send its result or its error, unless the client has left."""
        if self._has_left and isinstance(request, CommandRequest) and isinstance(request.command, ReadCommand):
            return
        try:
            await (self._start_run(request) if isinstance(request, RunRequest) else self._execute_command(request))
        except WebSocketDisconnect:
            pass
        except AppError as error:
            await self._send_error(error, **request_ids(request))
        except Exception:
            logger.exception("websocket frame execution failed")
            await self._send_error(internal_error(), **request_ids(request))

    async def _parse_frame(self, body: bytes | None) -> AgentRequest:
        if body is None:
            raise AppError(ErrorCode.VALIDATION_ERROR, "Frames must be text.")
        check_size(len(body), self._max_body)
        return await parse_body(body, self._caller)

    async def _start_run(self, request: RunRequest) -> None:
        """Admit a run and queue its events.

        ``AGUI_ON_BUSY`` decides about a run that arrives while another one is open on this connection. The threads of
        the two do not matter, because runs do not interleave on a connection. If the connection already reads the
        run, nothing happens, so that its events are sent once.

        Raises:
            AppError: THREAD_BUSY, or as raised by ``Service.admit``.
        """
        run_input = request.run_input
        local_run = self._service.runs.find_local(self._caller, run_input.thread_id, run_input.run_id)
        if any(subscription.run is local_run for subscription in self._subscriptions):
            return
        open_runs = [subscription.run for subscription in self._subscriptions if not subscription.run.log.has_ended]
        on_busy = busy_choice(run_input.forwarded_props, self._on_busy)
        if open_runs and on_busy is OnBusy.REJECT:
            raise AppError(ErrorCode.THREAD_BUSY, "Another run is streaming on this connection.")
        self._check_capacity()
        self._input_in_admission = run_input
        try:
            subscription = await self._service.admit(run_input, self._caller, request.size)
        finally:
            self._input_in_admission = None
        self._add_subscription(subscription)
        self._own_runs.append(subscription.run)
        if on_busy is OnBusy.INTERRUPT:
            for run in reversed(open_runs):
                with contextlib.suppress(AppError):  # the run has ended in the meantime
                    await self._service.runs.cancel(self._caller, run.key.thread_id, run.key.run_id)

    def _check_capacity(self) -> None:
        if len(self._subscriptions) > MAX_WAITING:
            raise AppError(ErrorCode.THREAD_BUSY, "Too many runs wait on this connection.")

    def _add_subscription(self, subscription: Subscription) -> None:
        if any(other.run is subscription.run for other in self._subscriptions):
            subscription.close()
            raise AppError(ErrorCode.THREAD_BUSY, "This run is streaming on this connection already.")
        self._subscriptions.append(subscription)
        self._last_thread_id = subscription.run.key.thread_id
        if self._stream_task is None:
            self._stream_task = self._tasks.create_task(self._stream())

    async def _execute_command(self, request: CommandRequest) -> None:
        command = request.command
        if isinstance(command, Ping):
            await self._send_control(control_frame("pong", id=request.frame_id))
            return
        if isinstance(command, Cancel | Attach) and has_no_ids(command):
            command = self._with_ids(command)
        with self._quota.acquire(Limit.BYTES_IN_FLIGHT, 0) as lease:

            def resize(size: int) -> None:
                lease.resize(FRAME_COPIES * size)

            result = await self._commands.answer(command, self._caller, resize)
            if isinstance(command, Attach):
                await self._attach(command)
            fields = control_fields("result", id=request.frame_id, command=command.type, **result)
            frame = (await encode_result(fields, self._caller.identity, lease.size)).decode()
            del result, fields  # the client may take its time
            resize(len(frame))
            await self._send_frame(frame)

    async def _attach(self, command: Attach) -> None:
        self._check_capacity()
        subscription = await self._service.attach(self._caller, command.thread_id, command.run_id, command.after)
        self._add_subscription(subscription)

    def _with_ids(self, command: Cancel | Attach) -> Cancel | Attach:
        """Return the command with the ids that it refers to on this connection.

        Raises:
            AppError: RUN_NOT_FOUND if this connection has no such run.
        """
        if isinstance(command, Attach):
            if self._last_thread_id is None:
                raise AppError(ErrorCode.RUN_NOT_FOUND, "This connection has had no run; name a threadId or a runId.")
            return command.model_copy(update={"thread_id": self._last_thread_id})
        if (key := self._own_run()) is None:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "This connection has started no run that is still open.")
        return command.model_copy(update={"thread_id": key.thread_id, "run_id": key.run_id})

    def _own_run(self) -> RunKey | None:
        """Return the key of the first open run that this connection started, or None."""
        for run in self._own_runs:
            if not run.log.has_ended:
                return run.key
        if (run_input := self._input_in_admission) is None:
            return None
        local_run = self._service.runs.find_local(self._caller, run_input.thread_id, run_input.run_id)
        return None if local_run is None else local_run.key

    async def _send_error(self, error: AppError, **ids: object) -> None:
        """Send an error, unless the client has left."""
        with contextlib.suppress(WebSocketDisconnect):
            await self._send_control(error_frame(error, self._caller.request_id, ids))
