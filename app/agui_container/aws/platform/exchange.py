"""One request to a container, and its answer on the way to the caller.

Rules:

- A container never notices that its caller has gone: its answer is read to the end (sample-multi-agent#71). uvicorn
  drops what is sent to a caller who is not there any more, and cancels nothing.
- Any 4xx and 5xx becomes RUN_ERROR with the code AGENT_ERROR, and its body is only logged.
- A slow caller slows the container down. Bytes are never changed.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing

import httpx
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from agui_container.aws.platform.errors import PlatformError, PlatformRefusal
from agui_container.aws.platform.headers import RETURNED
from agui_container.aws.platform.sessions import ContainerSession

MAX_SHOWN = 200
"""Bytes of an error of the container in the log."""

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
