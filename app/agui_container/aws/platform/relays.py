"""Requests and sockets on their way between the caller and the container.

Rules:

- A container never notices that its caller has gone: its answer is read to the end (sample-multi-agent#71). uvicorn
  drops what is sent to a caller who is not there any more, and cancels nothing.
- Any 4xx and 5xx becomes RUN_ERROR with the code AGENT_ERROR, and its body is only logged.
- A slow caller slows the container down. Bytes are never changed.
- A message of a socket that is too large closes both sides with 1009, which the two libraries see to, and too many in a
  second with 1008. A close of one side closes the other one.

Sources: devguide ``bedrock-agentcore-limits`` and ``runtime-get-started-websocket``.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping
from contextlib import aclosing, suppress

import httpx
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close, CloseCode

from agui_container.aws.platform.containers import ProcessContainer
from agui_container.aws.platform.errors import PlatformError, PlatformRefusal
from agui_container.aws.platform.headers import RETURNED
from agui_container.aws.platform.options import PlatformLimits
from agui_container.aws.platform.sessions import ContainerSession

MAX_SHOWN = 200
"""Bytes of an error of the container in the log."""

CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 1.0
"""Real seconds that a side may take for its own close frame."""

NOT_SENT = (CloseCode.NO_STATUS_RCVD, CloseCode.ABNORMAL_CLOSURE, CloseCode.TLS_HANDSHAKE)
"""Codes that no endpoint may send."""

logger = logging.getLogger(__name__)


class ContainerExchange:
    """One complete request to the container of a session, which Starlette calls as a response.

    It raises ``PlatformRefusal`` before the answer has begun. An answer that is cut later has no proper end, so that
    the caller notices.
    """

    def __init__(self, session: ContainerSession, request: httpx.Request, own_headers: Mapping[str, str]) -> None:
        self._session = session
        self._request = request
        self._own_headers = own_headers
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - of every response
        """Send the request, and pass the answer on."""
        try:
            with self._session.use():
                async with asyncio.timeout(self._session.options.limits.sync_seconds) as deadline:
                    response = await self._session.http.send(self._request, stream=True)
                    async with aclosing(response):
                        await self._pass_on(response, deadline, send)
        except TimeoutError:
            self._cut("reached the longest time that an answer may take")
        except httpx.HTTPError as error:
            self._cut(f"was cut off by the container: {type(error).__name__}: {error}")

    async def _pass_on(self, response: httpx.Response, deadline: asyncio.Timeout, send: Send) -> None:
        if response.is_error:
            detail = (await response.aread())[:MAX_SHOWN].decode(errors="replace")
            logger.warning("session %s folded into AGENT_ERROR: %s %r", self._session.id, response.status_code, detail)
            raise PlatformRefusal(PlatformError.AGENT_ERROR)
        limits, at = self._session.options.limits, deadline.when()
        if at is not None and response.headers.get("content-type", "").startswith("text/event-stream"):
            deadline.reschedule(at + limits.stream_seconds - limits.sync_seconds)
        returned = {name: response.headers[name] for name in RETURNED if name in response.headers}
        headers = Headers({**returned, **self._own_headers}).raw
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        self._has_begun = True
        async for piece in response.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _cut(self, reason: str) -> None:
        logger.warning("session %s answer %s", self._session.id, reason)
        if not self._has_begun:
            raise PlatformRefusal(PlatformError.AGENT_ERROR)


# --- sockets ----------------------------------------------------------------------------------------------------------


class FrameRate:
    """Messages of one direction in the last real second, of which there may be ``limit``."""

    def __init__(self, limit: int) -> None:
        self._times: deque[float] = deque(maxlen=limit)
        self.close = Close(CloseCode.POLICY_VIOLATION, f"more than {limit} frames in a second")

    def is_exceeded(self) -> bool:
        """Count a frame. Return True if it is one too many."""
        now = time.monotonic()
        is_full = len(self._times) == self._times.maxlen and now - self._times[0] < 1.0
        self._times.append(now)
        return is_full


def connect_container(container: ProcessContainer, headers: Mapping[str, str], limits: PlatformLimits) -> connect:
    """Return the socket to a container, which is opened by awaiting it or as a context.

    It fails with 1009 for a message of the container that is too large.
    """
    return connect(
        f"{container.url.replace('http', 'ws', 1)}/ws",
        additional_headers=headers,
        close_timeout=CLOSE_SECONDS,
        compression=None,
        max_size=limits.frame_bytes,
        open_timeout=CONNECT_SECONDS,
        ping_interval=None,
        proxy=None,
        user_agent_header=None,
    )


class SocketRelay:
    def __init__(self, session: ContainerSession, caller: WebSocket, container: ClientConnection) -> None:
        self._session = session
        self._caller = caller
        self._container = container
        self._limits = session.options.limits

    async def run(self) -> None:
        """Pass messages until a side closes, a limit is reached or the session ends, and close both sides."""
        seconds = self._limits.stream_seconds
        directions = [asyncio.create_task(each) for each in (self._from_container(), self._from_caller())]
        try:
            done, _ = await asyncio.wait(directions, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.wait(directions)
        too_long = Close(CloseCode.POLICY_VIOLATION, f"a stream has at most {seconds:g} s")
        end = next((direction.result() for direction in directions if direction in done), too_long)
        code = int(CloseCode.NORMAL_CLOSURE if end.code in NOT_SENT else end.code)
        logger.info("session %s socket closed: %s %s", self._session.id, code, end.reason)
        if {self._caller.client_state, self._caller.application_state} == {WebSocketState.CONNECTED}:
            with suppress(WebSocketDisconnect):
                await self._caller.close(code, end.reason)
        await self._container.close(code, end.reason)

    async def _from_caller(self) -> Close:
        rate = FrameRate(self._limits.frames_per_second)
        while (message := await self._caller.receive())["type"] != "websocket.disconnect":
            if rate.is_exceeded():
                return rate.close
            self._session.touch()
            content: str | bytes = message["bytes"] if message.get("text") is None else message["text"]
            with suppress(ConnectionClosed):  # the other direction tells the reason
                await self._container.send(content)
        return Close(message.get("code", CloseCode.NORMAL_CLOSURE), message.get("reason") or "")

    async def _from_container(self) -> Close:
        rate = FrameRate(self._limits.frames_per_second)
        try:
            while True:
                message = await self._container.recv()
                if rate.is_exceeded():
                    return rate.close
                self._session.touch()
                kind = "text" if isinstance(message, str) else "bytes"
                await self._caller.send({"type": "websocket.send", kind: message})
        except ConnectionClosed as closed:
            return closed.sent or closed.rcvd or Close(CloseCode.INTERNAL_ERROR, "the container has gone")
        except WebSocketDisconnect:
            return Close(CloseCode.GOING_AWAY, "the caller has gone")
