"""At most 250 frames in any second on one socket, AgentCore's limit, and no wait before that.

Rule: a lone event is never delayed. A burst is free up to ``BURST`` frames; then frames leave at ``RATE`` per second,
while the reader falls behind and its deltas merge.

Runs over a WebSocket: any number of runs and commands per connection, one run streaming at a time.

Rule: a text frame in is a run input or a command; a text frame out is one bare AG-UI event, or a control frame, told
apart by ``control`` instead of ``type``. A bad frame is answered and harms nothing else. What is asked is done in the
order in which it was asked, but a cancel waits for nothing except the run that it means: the one that it names, or
without ids the one that this connection started and that is still open. Within AgentCore's limits: no frame above 32 KB
that can be smaller, at most 250 frames a second (docs/architecture.md).
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable

from ag_ui.core import RunAgentInput
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agui_container.engine.log.subscription import Readable, Subscription
from agui_container.engine.policy import OnBusy, busy_choice
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import RunKey
from agui_container.protocol.commands import Attach, Cancel, Capabilities, Ping
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import CommandRequest, MalformedRequest, RunRequest
from agui_container.protocol.parser import Request as Asked
from agui_container.protocol.wire.ws_frames import make_frames
from agui_container.transports.caller_middleware import BEARER_PROTOCOL, caller_of
from agui_container.transports.commands import CommandResponder
from agui_container.transports.error_responses import internal_error
from agui_container.transports.request_body import check_size, parse_body

RATE = 200.0
BURST = 49.0

ENOUGH = 1 - 1e-6
"""Of a token, to have it: what a sum of fractions lacks could be too little to wait for."""


class RateLimiter:
    """A token bucket: ``BURST``, one second of ``RATE`` and a frame that is late on its way make 250.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._tokens = BURST
        self._filled_at = now()

    def delay(self) -> float:
        """The seconds until a frame may leave. If it may now, that takes a token."""
        now = self._now()
        self._tokens = min(BURST, self._tokens + (now - self._filled_at) * RATE)
        self._filled_at = now
        if self._tokens < ENOUGH:
            return (1 - self._tokens) / RATE
        self._tokens -= 1
        return 0.0

    async def wait(self) -> None:
        """Until the next frame leaves. Whoever wakes late has taken nothing in the meantime."""
        while (delay := self.delay()) > 0:  # noqa: ASYNC110 - a token is told by the time alone
            await asyncio.sleep(delay)


logger = logging.getLogger(__name__)

MAX_WAITING = 16
"""Runs that may wait for their turn on one connection."""

MAX_UNDONE = 16
"""Frames that may wait until those before them are done; behind them the connection is not read."""

CLOSED = 1006
"""The code of a connection that ended without one."""

AT_ONCE = Cancel | Ping | Capabilities
"""Commands that wait for nothing."""


def routes(service: Service, commands: CommandResponder, *, max_body: int, on_busy: OnBusy) -> list[BaseRoute]:
    """The socket route. ``max_body`` bounds a frame in; ``on_busy`` is for a run that arrives while one streams."""

    async def socket(websocket: WebSocket) -> None:
        offered = websocket.scope.get("subprotocols", ())
        await websocket.accept(BEARER_PROTOCOL if BEARER_PROTOCOL in offered else None)
        await WebSocketConnection(websocket, service, commands, max_body=max_body, on_busy=on_busy).serve()

    return [WebSocketRoute("/ws", socket)]


class WebSocketConnection:
    """One accepted socket: it reads frames, a task does what they ask, and a task streams the runs that there are."""

    def __init__(
        self, websocket: WebSocket, service: Service, commands: CommandResponder, *, max_body: int, on_busy: OnBusy
    ) -> None:
        self._websocket = websocket
        self._service = service
        self._commands = commands
        self._caller: Caller = caller_of(websocket)
        self._max_body = max_body
        self._on_busy = on_busy
        self._with_seq = websocket.query_params.get("cursor") == "1"
        self._subscriptions: list[Subscription] = []
        self._starting: RunAgentInput | None = None
        """The run that waits to be admitted."""
        self._started: list[Readable] = []
        """The admitted runs of this connection, as long as their events are to be sent."""
        self._thread_id: str | None = None
        """The thread of the last run that was started or attached here."""
        self._tasks = asyncio.TaskGroup()
        self._streaming: asyncio.Task[None] | None = None
        self._pace, self._sending = RateLimiter(asyncio.get_running_loop().time), asyncio.Lock()
        self._unfinished: list[Asked] = []
        self._working: asyncio.Task[None] | None = None
        self._at_once = asyncio.Semaphore(MAX_WAITING)

    async def serve(self) -> None:
        """Until the client leaves. Runs that are still open then follow ``AGUI_ON_DISCONNECT``."""
        try:
            async with self._tasks:
                await self._receive_frames()
                await self._all_done()
                if self._streaming:
                    self._streaming.cancel()
        except* WebSocketDisconnect:
            pass
        finally:
            # What a task has raised leads back here, and the group and the task that raised it keep it.
            self._tasks, self._streaming, self._working = asyncio.TaskGroup(), None, None
            for subscription in self._subscriptions:
                subscription.close()
            self._subscriptions.clear()

    # --- out ---

    async def _stream(self) -> None:
        while self._subscriptions:
            await self._send_run(self._subscriptions[0])
            subscription = self._subscriptions.pop(0)
            subscription.close()
            self._started = [run for run in self._started if run is not subscription.run]
        self._streaming = None

    async def _send_run(self, subscription: Subscription) -> None:
        try:
            async for batch in subscription:
                for frame in make_frames(batch.envelopes(), with_seq=self._with_seq):
                    await self._send_frame(frame)
        except AppError as error:  # it cannot be read on now; the run may go on
            _, thread_id, run_id = subscription.run.key
            await self._send_error(error, threadId=thread_id, runId=run_id)

    async def _control(self, kind: str, **fields: object) -> None:
        known = {name: value for name, value in fields.items() if value is not None}
        await self._send_frame(json.dumps({"control": kind, **known}, ensure_ascii=False))

    async def _send_frame(self, frame: str) -> None:
        """Send one frame, behind those that wait to be sent.

        Raises:
            WebSocketDisconnect: the connection is closed, by whomever.
        """
        async with self._sending:
            await self._pace.wait()
            try:
                await self._websocket.send_text(frame)
            except RuntimeError as error:  # of starlette's and uvicorn's: a second frame, or a close of their own
                raise WebSocketDisconnect(CLOSED) from error

    # --- in ---

    async def _receive_frames(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            await self._handle_frame(message.get("text"))

    async def _handle_frame(self, text: str | None) -> None:
        """One frame. Whatever is wrong with it, the connection and the runs on it go on."""
        try:
            asked = await self._parse_frame(text)
        except AppError as error:
            await self._send_error(error, id=error.frame_id if isinstance(error, MalformedRequest) else None)
            return
        except Exception:
            logger.exception("a frame could not be read")
            await self._send_error(internal_error())
            return
        if self._is_immediate(asked):
            await self._at_once.acquire()
            self._tasks.create_task(self._execute(asked)).add_done_callback(lambda _: self._at_once.release())
            return
        if len(self._unfinished) >= MAX_UNDONE:
            await self._all_done()
        self._unfinished.append(asked)
        if self._working is None:
            self._working = self._tasks.create_task(self._work())

    def _is_immediate(self, asked: Asked) -> bool:
        if isinstance(asked, RunRequest) or not isinstance(asked.command, AT_ONCE):
            return False
        if not isinstance(asked.command, Cancel):
            return True
        waiting = [each.run_input for each in self._unfinished if isinstance(each, RunRequest)]
        if has_no_ids(asked.command):
            return self._own_run() is not None or (self._starting is None and not waiting)
        return all(run_input.run_id != asked.command.run_id for run_input in waiting)

    async def _work(self) -> None:
        while self._unfinished:
            with contextlib.suppress(WebSocketDisconnect):  # who has left gets no answer
                await self._execute(self._unfinished.pop(0))
        self._working = None

    async def _all_done(self) -> None:
        if self._working is not None:
            await asyncio.wait([self._working])

    async def _execute(self, asked: Asked) -> None:
        try:
            await (self._start(asked) if isinstance(asked, RunRequest) else self._command(asked))
        except WebSocketDisconnect:
            raise
        except AppError as error:
            await self._send_error(error, **request_ids(asked))
        except Exception:
            logger.exception("a frame could not be handled")
            await self._send_error(internal_error(), **request_ids(asked))

    async def _parse_frame(self, text: str | None) -> Asked:
        if text is None:
            raise AppError(ErrorCode.VALIDATION_ERROR, "Frames must be text.")
        body = text.encode()
        check_size(len(body), self._max_body)
        return await parse_body(body)

    async def _start(self, asked: RunRequest) -> None:
        """A run that arrives during a run follows ``AGUI_ON_BUSY``, whatever its thread: runs do not interleave.

        One that this connection reads, or will, is joined already: its events go out once.
        """
        run_input = asked.run_input
        joined = self._service.runs.find_local(self._caller, run_input.thread_id, run_input.run_id)
        if any(subscription.run is joined for subscription in self._subscriptions):
            return
        standing = [subscription.run for subscription in self._subscriptions if not subscription.run.log.has_ended]
        on_busy = busy_choice(run_input.forwarded_props, self._on_busy)
        if standing and on_busy is OnBusy.REJECT:
            raise AppError(ErrorCode.THREAD_BUSY, "Another run is streaming on this connection.")
        self._check_room()
        self._starting = run_input
        try:
            subscription = await self._service.admit(run_input, self._caller, asked.size)
        finally:
            self._starting = None
        self._queue(subscription)
        self._started.append(subscription.run)
        if on_busy is OnBusy.INTERRUPT:
            for run in reversed(standing):
                with contextlib.suppress(AppError):  # over by now
                    await self._service.runs.cancel(self._caller, run.key.thread_id, run.key.run_id)

    def _check_room(self) -> None:
        if len(self._subscriptions) > MAX_WAITING:
            raise AppError(ErrorCode.THREAD_BUSY, "Too many runs wait on this connection.")

    def _queue(self, subscription: Subscription) -> None:
        if any(waiting.run is subscription.run for waiting in self._subscriptions):
            subscription.close()
            raise AppError(ErrorCode.THREAD_BUSY, "This run is streaming on this connection already.")
        self._subscriptions.append(subscription)
        self._thread_id = subscription.run.key.thread_id
        if self._streaming is None:
            self._streaming = self._tasks.create_task(self._stream())

    async def _command(self, asked: CommandRequest) -> None:
        command = asked.command
        if isinstance(command, Ping):
            await self._control("pong", id=asked.frame_id)
            return
        if isinstance(command, Cancel | Attach) and has_no_ids(command):
            command = self._with_ids(command)
        result = await self._commands.answer(command, self._caller)
        if isinstance(command, Attach):
            self._check_room()
            subscription = await self._service.attach(self._caller, command.thread_id, command.run_id, command.after)
            self._queue(subscription)
        await self._control("result", id=asked.frame_id, command=command.type, **result)

    def _with_ids(self, command: Cancel | Attach) -> Cancel | Attach:
        """The same command with the ids that are meant on this connection. Raises ``AppError`` RUN_NOT_FOUND."""
        if isinstance(command, Attach):
            if self._thread_id is None:
                raise AppError(ErrorCode.RUN_NOT_FOUND, "This connection has had no run; name a threadId or a runId.")
            return command.model_copy(update={"thread_id": self._thread_id})
        if (key := self._own_run()) is None:
            raise AppError(ErrorCode.RUN_NOT_FOUND, "This connection has started no run that is still open.")
        return command.model_copy(update={"thread_id": key.thread_id, "run_id": key.run_id})

    def _own_run(self) -> RunKey | None:
        """The first run that this connection started and that is still open."""
        for run in self._started:
            if not run.log.has_ended:
                return run.key
        if self._starting is None:
            return None
        starting = self._service.runs.find_local(self._caller, self._starting.thread_id, self._starting.run_id)
        return None if starting is None else starting.key

    async def _send_error(self, error: AppError, **about: object) -> None:
        facts = {"code": error.code, "message": error.message, "retryable": error.spec.retryable}
        await self._control("error", **about, **facts, requestId=self._caller.request_id)


def has_no_ids(command: Cancel | Attach) -> bool:
    """Check whether a command names neither a thread nor a run."""
    return command.thread_id is None and command.run_id is None


def request_ids(asked: Asked) -> dict[str, object]:
    """What a refusal repeats of what was asked: the run's ids, or what the frame is called."""
    if isinstance(asked, RunRequest):
        return {"threadId": asked.run_input.thread_id, "runId": asked.run_input.run_id}
    return {"id": asked.frame_id}
