"""A WebSocket between the caller and the container: frames in both directions, within AgentCore's limits.

Rules: a frame of the container that is too large closes both sides with 1009, and too many frames in a second with
1008. The size of a caller's frames is watched by uvicorn. A close of one side closes the other one.

Sources: devguide ``bedrock-agentcore-limits`` and ``runtime-get-started-websocket``.
"""

import logging
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.frames import CloseCode

from agui_container.platform.errors import PlatformError, PlatformRefusal
from agui_container.platform.session import ContainerSession, PlatformContext
from agui_container.platform.streams import SocketInspector

CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 1.0
"""Real seconds that a side may take for its own close frame."""

NOT_SENT = (CloseCode.NO_STATUS_RCVD, CloseCode.ABNORMAL_CLOSURE, CloseCode.TLS_HANDSHAKE)
"""Codes that no endpoint may send."""

LEAVING = (CloseCode.GOING_AWAY, CloseCode.SERVICE_RESTART)
"""Codes of a container that stops. It may leave an input unanswered that has just arrived."""

logger = logging.getLogger(__name__)


class FrameRate:
    """Frames of one direction in the last real second.

    Args:
        limit: frames that one second may have.
    """

    def __init__(self, limit: int) -> None:
        self._times: deque[float] = deque(maxlen=limit)

    def is_exceeded(self) -> bool:
        """Count a frame. Return True if it is one too many."""
        now = time.monotonic()
        is_full = len(self._times) == self._times.maxlen and now - self._times[0] < 1.0
        self._times.append(now)
        return is_full


class SocketRelay:
    """The two sides of one socket.

    Args:
        session: the session of the container.
        context: surroundings of all sessions.
    """

    def __init__(self, session: ContainerSession, context: PlatformContext) -> None:
        self._session = session
        self._limits, self._clock, self._findings = context.limits, context.clock, context.findings
        self._inspector = SocketInspector(context.findings)
        self._code = int(CloseCode.NORMAL_CLOSURE)
        self._reason = ""

    async def connect(self, headers: Sequence[tuple[str, str]]) -> ClientConnection:
        """Open the socket to the container. Raises ``PlatformRefusal`` AGENT_ERROR if it refuses."""
        try:
            connection = await connect(
                f"ws://127.0.0.1:{self._session.container.port}/ws",
                additional_headers=headers,
                close_timeout=CLOSE_SECONDS,
                compression=None,
                max_size=(None, self._limits.frame_bytes),
                open_timeout=CONNECT_SECONDS,
                ping_interval=None,
                proxy=None,
                user_agent_header=None,
            )
        except (OSError, TimeoutError, InvalidHandshake) as error:
            logger.warning("session %s socket refused by the container: %s", self._session.id, error)
            self._findings.explain(
                "socket.upgrade", f"/ws is not served ({error}); the contract asks for SSE or WebSocket"
            )
            raise PlatformRefusal(PlatformError.AGENT_ERROR) from None
        self._findings.hold("socket.upgrade")
        return connection

    async def run(self, websocket: WebSocket, connection: ClientConnection) -> None:
        """Pass messages until a side closes, a limit is reached or the session ends, and close both sides."""
        self._session.answers.add(self._inspector)
        try:
            async with self._clock.timeout(self._limits.stream_seconds), anyio.create_task_group() as group:
                group.start_soon(self._from_caller, websocket, connection, group.cancel_scope)
                group.start_soon(self._from_container, websocket, connection, group.cancel_scope)
        except TimeoutError:
            self._end(CloseCode.POLICY_VIOLATION, f"a stream has at most {self._limits.stream_seconds:g} s")
        finally:
            self._session.answers.discard(self._inspector)
        if self._inspector.has_messages:
            self._findings.hold("socket.frame-size")
            self._findings.hold("socket.frame-rate")
        with anyio.CancelScope(shield=True):
            states = {websocket.client_state, websocket.application_state}
            if states == {WebSocketState.CONNECTED}:
                with suppress(WebSocketDisconnect):
                    await websocket.close(self._code, self._reason)
            await connection.close(self._code, self._reason)

    async def _from_caller(self, websocket: WebSocket, connection: ClientConnection, scope: anyio.CancelScope) -> None:
        rate = FrameRate(self._limits.frames_per_second)
        while (message := await websocket.receive())["type"] != "websocket.disconnect":
            if rate.is_exceeded():
                self._end(CloseCode.POLICY_VIOLATION, f"more than {self._limits.frames_per_second} frames in a second")
                break
            self._session.touch()
            content: str | bytes = message["bytes"] if message.get("text") is None else message["text"]
            self._inspector.feed_caller(content)
            try:
                await connection.send(content)
            except ConnectionClosed:
                return  # the other task tells the reason
        else:
            self._end(message.get("code", CloseCode.NORMAL_CLOSURE), message.get("reason") or "")
        scope.cancel()

    async def _from_container(
        self, websocket: WebSocket, connection: ClientConnection, scope: anyio.CancelScope
    ) -> None:
        rate, limits = FrameRate(self._limits.frames_per_second), self._limits
        try:
            while True:
                frames: list[str | bytes] = []
                async for frame in connection.recv_streaming():
                    frames.append(frame)
                    if rate.is_exceeded():
                        detail = f"the container sent more than {limits.frames_per_second} frames in a second"
                        self._findings.break_rule("socket.frame-rate", detail)
                        self._end(CloseCode.POLICY_VIOLATION, detail)
                        scope.cancel()
                self._session.touch()
                with self._inspector.handling():
                    await self._deliver(websocket, frames)
        except ConnectionClosed as closed:
            self._end_by(closed)
        except WebSocketDisconnect:
            self._end(CloseCode.GOING_AWAY, "the caller has gone")
        scope.cancel()

    async def _deliver(self, websocket: WebSocket, frames: Sequence[str | bytes]) -> None:
        """Send one message of the container, whose fragments arrive as one frame."""
        if all(isinstance(frame, str) for frame in frames):
            text = "".join(map(str, frames))
            self._inspector.feed(text)
            await websocket.send_text(text)
        else:
            data = b"".join(frame for frame in frames if isinstance(frame, bytes))
            self._inspector.feed(data)
            await websocket.send_bytes(data)

    def _end_by(self, closed: ConnectionClosed) -> None:
        """Take the end that the container's side has given."""
        if closed.sent is not None and closed.sent.code == CloseCode.MESSAGE_TOO_BIG:
            detail = f"a frame of the container has more than {self._limits.frame_bytes} bytes"
            self._findings.break_rule("socket.frame-size", detail)
            self._end(CloseCode.MESSAGE_TOO_BIG, detail)
            return
        if closed.rcvd is None:
            self._end(CloseCode.INTERNAL_ERROR, "the container has gone")
        else:
            self._inspector.finish()
            if closed.rcvd.code not in LEAVING:
                self._inspector.judge_unanswered()
            self._end(closed.rcvd.code, closed.rcvd.reason)

    def _end(self, code: int, reason: str) -> None:
        """Decide about the close code of both sides, and log it."""
        self._code = int(CloseCode.NORMAL_CLOSURE if code in NOT_SENT else code)
        self._reason = reason
        logger.info("session %s socket closed: %s %s", self._session.id, self._code, reason)
