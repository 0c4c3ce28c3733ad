"""Outgoing frames of a WebSocket: events of runs, and control frames, which answer requests.

Rule: a control frame has ``control`` in the place of an event's ``type``.

Rule: frames leave in the order in which they are given, at most 230 in any second, because AgentCore closes a
connection on which more than 250 arrive in one, and a network may bunch them. A single frame is never delayed: a
burst is free up to ``BURST`` frames, and then frames leave at ``RATE`` per second. No frame that can be smaller
exceeds 32 KB. Deltas that wait are merged.

Rule: a frame counts as in flight until the client has taken it. Events wait until there is room for their bytes.

Source: AgentCore's limits, ``bedrock-agentcore-limits`` (docs/architecture.md).
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from starlette.websockets import WebSocket, WebSocketDisconnect

from agui_container.engine.admission.quota import Limit
from agui_container.protocol.errors import AppError
from agui_container.protocol.parser import CommandRequest
from agui_container.protocol.wire.envelope import Batch
from agui_container.protocol.wire.ws_frames import make_frames
from agui_container.runtime.token_bucket import TokenBucket
from agui_container.transports.caller_middleware import caller_of, quota_of
from agui_container.transports.commands import encode_result

RATE = 200.0
"""Frames per second after a burst."""

BURST = 29.0
"""Frames that may leave without delay."""

FRAME_COPIES = 2
"""Copies of an outgoing frame that are in memory while the client does not take it: its text, and its bytes."""

ABNORMAL_CLOSURE = 1006
"""Close code of a connection that ended without a close frame (RFC 6455, section 7.4.1)."""


class RateLimiter:
    """Token bucket for outgoing frames. ``BURST``, one second of ``RATE`` and one delayed frame add up to 230.

    Args:
        now: clock that returns monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.delay = TokenBucket(RATE, BURST, now).delay

    async def wait(self) -> None:
        """Wait until a frame may leave. A token is consumed only when the wait is over."""
        while (delay := self.delay()) > 0:  # noqa: ASYNC110 - tokens depend on the time alone, so no event can signal one
            await asyncio.sleep(delay)


class FrameWriter:
    """Sends frames to the client of one connection.

    Attributes:
        has_left: True if the connection is closed. Frames that arrived before may still wait.
    """

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket
        self._caller = caller_of(websocket)
        self._quota = quota_of(websocket)
        self._with_seq = websocket.query_params.get("cursor") == "1"
        self._rate_limiter, self._lock = RateLimiter(asyncio.get_running_loop().time), asyncio.Lock()
        self.has_left = False

    async def send_events(self, batch: Batch) -> None:
        """Send the events of a batch.

        Raises:
            WebSocketDisconnect: the connection is closed.
            AppError: RATE_LIMIT_EXCEEDED if there is no room for them for a long time.
        """
        for frame in make_frames(batch.envelopes(), with_seq=self._with_seq):
            with await self._quota.acquire_when_free(Limit.BYTES_IN_FLIGHT, FRAME_COPIES * len(frame)):
                await self._send(frame)

    async def send_control(self, kind: str, **fields: object) -> None:
        """Send a control frame. Fields that are None are left out.

        Raises:
            WebSocketDisconnect: the connection is closed.
            AppError: RATE_LIMIT_EXCEEDED if too many bytes are unread already.
        """
        frame = json.dumps(control_fields(kind, fields), ensure_ascii=False)
        with self._quota.acquire(Limit.BYTES_IN_FLIGHT, FRAME_COPIES * len(frame)):
            await self._send(frame)

    async def send_result(
        self, request: CommandRequest, answer: AbstractAsyncContextManager[Mapping[str, object]]
    ) -> None:
        """Send the result of a command, which ``answer`` provides.

        Raises:
            WebSocketDisconnect: the connection is closed.
            AppError: as ``answer``; RATE_LIMIT_EXCEEDED if too many bytes are unread already.
        """
        async with answer as result:
            fields = {"id": request.frame_id, "command": request.command.type, **result}
            frame = (await encode_result(control_fields("result", fields))).decode()
        del fields, result  # the client may take its time
        with self._quota.acquire(Limit.BYTES_IN_FLIGHT, FRAME_COPIES * len(frame)):
            await self._send(frame)

    async def send_error(self, error: AppError, **ids: object) -> None:
        """Send an error, unless the client has left. ``ids`` identify the request that the frame answers.

        Raises:
            AppError: RATE_LIMIT_EXCEEDED if too many bytes are unread already.
        """
        with contextlib.suppress(WebSocketDisconnect):
            await self.send_control(
                "error",
                **ids,
                code=error.code,
                message=error.message,
                retryable=error.spec.is_retryable,
                retryAfter=error.wait_seconds,
                requestId=self._caller.request_id,
            )

    async def close(self, error: AppError) -> None:
        """Send an error and close the connection, unless the client has left."""
        await self.send_error(error)
        if not self.has_left:
            await self._websocket.close(error.spec.ws_close, error.code)

    async def _send(self, frame: str) -> None:
        async with self._lock:
            await self._rate_limiter.wait()
            try:
                await self._websocket.send_text(frame)
            except (RuntimeError, WebSocketDisconnect) as error:  # starlette and uvicorn raise one of them, once closed
                self.has_left = True
                raise WebSocketDisconnect(ABNORMAL_CLOSURE) from error


def control_fields(kind: str, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a control frame. Those that are None are left out."""
    return {"control": kind, **{name: value for name, value in fields.items() if value is not None}}
