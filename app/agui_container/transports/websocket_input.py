"""Incoming frames of a WebSocket: which of them are read, and as what.

Rules:

- An incoming text frame is a run input or a command.
- A malformed frame is answered by an error and does not affect the rest of the connection.
- A frame that arrives after the connection's token has expired is answered by an error, and the connection is closed.
- A client that sends too many frames gets the error, and nothing is read from it for a while.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, MutableMapping
from typing import Any

from msgspec import Struct
from starlette.websockets import WebSocket

from agui_container.engine.admission.quota import Limit, QuotaLease
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.parser import MalformedRequest
from agui_container.protocol.parser import Request as AgentRequest
from agui_container.transports.caller_middleware import caller_of, quota_of
from agui_container.transports.error_responses import internal_error
from agui_container.transports.request_body import check_size, parse_body
from agui_container.transports.websocket_output import FrameWriter

PAUSE_SECONDS = 1.0
"""Seconds for which a socket is not read after its caller has sent too many messages."""

logger = logging.getLogger(__name__)


class Frame(Struct, frozen=True):
    """A request of the client, whose bytes count as in flight until it has been executed."""

    request: AgentRequest
    lease: QuotaLease


class FrameReader:
    """Reads the frames of one connection.

    Args:
        websocket: the connection.
        output: takes the answers to frames that are refused.
        check_expiry: raises ``AppError`` if the token of the connection has expired.
        max_body: largest frame, in bytes.
    """

    def __init__(
        self, websocket: WebSocket, output: FrameWriter, check_expiry: Callable[[], None], max_body: int
    ) -> None:
        self._websocket = websocket
        self._caller = caller_of(websocket)
        self._quota = quota_of(websocket)
        self._output = output
        self._check_expiry = check_expiry
        self._max_body = max_body
        self._agent: str | None = websocket.path_params.get("agent")

    async def read(self) -> Frame | None:
        """Return the next frame that is accepted, or None at the end of the connection."""
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
            if await self._may_read() and (frame := await self._accept(pop_body(message))) is not None:
                return frame

    async def _may_read(self) -> bool:
        """Count a frame. If its caller has sent too many, answer with the error and read nothing for a while."""
        try:
            self._quota.count(Limit.MESSAGES_PER_SECOND)
        except AppError as error:
            await self._output.send_error(error)
            if not self._output.has_left:
                await asyncio.sleep(PAUSE_SECONDS)
            return False
        return True

    async def _accept(self, body: bytes | None) -> Frame | None:
        """Return a frame, or None if it is refused. An error is answered."""
        try:
            with contextlib.ExitStack() as on_error:
                lease = on_error.enter_context(self._quota.acquire(Limit.BYTES_IN_FLIGHT, len(body or b"")))
                frame = Frame(await self._parse(body), lease)
                on_error.pop_all()  # the bytes count until the frame has been executed
                return frame
        except AppError as error:
            await self._output.send_error(error, id=error.frame_id if isinstance(error, MalformedRequest) else None)
        except Exception:
            logger.exception("websocket frame parsing failed")
            await self._output.send_error(internal_error())
        return None

    async def _parse(self, body: bytes | None) -> AgentRequest:
        if body is None:
            raise AppError(ErrorCode.VALIDATION_ERROR, "Frames must be text.")
        check_size(len(body), self._max_body)
        return (await parse_body(body, self._caller)).for_agent(self._agent)


def pop_body(message: MutableMapping[str, Any]) -> bytes | None:
    """Take the bytes of a text frame out of its message. The text may take four times as much memory as its bytes."""
    text: str | None = message.pop("text", None)
    return None if text is None else text.encode()
