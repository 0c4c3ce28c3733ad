"""Runs and commands as POST requests to one URL, answered by Server-Sent Events.

Rule: everything is a POST to the one URL, also the attach after a drop, because AgentCore forwards no other route. The
cursor is the last ``id:`` that arrived. An attach sends it as ``after`` in the body, because AgentCore forwards only
headers that are configured.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing, asynccontextmanager
from functools import cache
from typing import TypeVar

import httpx
from httpx_sse import EventSource

from agui_client.caller import Caller
from agui_client.errors import ConnectionDropped
from agui_client.events import TERMINAL, parse_frame
from agui_client.transport import EVENT_STREAM, Frame, Received, refusal, refused_response, unknown_command

T = TypeVar("T")

CONNECT_SECONDS = 30.0

SILENCE_SECONDS = 45.0
"""Silence after which a response counts as dropped. A server that numbers its events sends a comment every 15 s."""

FOREIGN_SILENCE_SECONDS = 900.0
"""The same before the first number, because other servers may be silent while a tool runs."""

KEEPALIVE_SECONDS = 2.0
"""Time that an unused connection stays open: less than servers do, so that no request meets one that just closes."""

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


class HttpTransport:
    """Implements ``Transport`` over HTTP."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._silence = FOREIGN_SILENCE_SECONDS
        self._opened: httpx.AsyncClient | None = None

    async def stream(self, request: str) -> AsyncGenerator[Received, None]:
        """Yield the events of a run. A RUN_ERROR that alone has no number belongs to no run: it is a refusal."""
        has_events = False
        async with self._response(request) as response, aclosing(EventSource(response).aiter_sse()) as events:
            while (event := await self._arrived(anext(events, None))) is not None:
                if not event.data:  # a comment, after an event with an id
                    continue
                frame = parse_frame(event.data)
                seq = int(event.id) if event.id.isdecimal() else None
                if seq is not None:
                    self._silence = SILENCE_SECONDS
                elif frame.get("type") == "RUN_ERROR" and not has_events:
                    raise refusal(frame)
                has_events = True
                yield Received(frame, seq)
                if frame.get("type") in TERMINAL:
                    return

    async def command(self, command: Frame) -> Frame:
        has_ended = False
        async with aclosing(self.stream(json.dumps({"command": command}))) as events:
            async for received in events:
                frame = received.frame
                if frame.get("type") == "CUSTOM" and isinstance(value := frame.get("value"), dict):
                    return value
                has_ended = frame.get("type") in TERMINAL
        raise unknown_command(command) if has_ended else ConnectionDropped("The answer to a command broke off.")

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    @asynccontextmanager
    async def _response(self, body: str) -> AsyncGenerator[httpx.Response, None]:
        """Send a request and give its response, whose head has arrived."""
        address = await self._caller.address()
        headers = {**address.headers, "Content-Type": "application/json", "Accept": EVENT_STREAM}
        request = self._client.build_request("POST", address.url, content=body, headers=headers)
        async with aclosing(
            await self._arrived(self._client.send(request, auth=address.sigv4, stream=True))
        ) as response:
            if not (response.is_success and EVENT_STREAM in response.headers.get("Content-Type", "")):
                raise refused_response(response.status_code, await self._body(response))
            yield response

    async def _body(self, response: httpx.Response) -> bytes:
        try:
            return await self._arrived(response.aread())
        except ConnectionDropped:
            return b""

    async def _arrived(self, part: Awaitable[T]) -> T:
        """Return a part of a response. Raises ``ConnectionDropped`` if it breaks off or the server is silent."""
        try:
            async with asyncio.timeout(self._silence):
                return await part
        except TimeoutError as error:
            raise ConnectionDropped(f"The server was silent for {self._silence:g} s.") from error
        except httpx.TransportError as error:
            cause = str(error) or type(error).__name__
            raise ConnectionDropped(f"The request failed: {cause}", was_sent=not isinstance(error, NOT_SENT)) from error

    @property
    def _client(self) -> httpx.AsyncClient:
        if self._opened is None:
            self._opened = httpx.AsyncClient(
                verify=_trust(),
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
                limits=httpx.Limits(keepalive_expiry=KEEPALIVE_SECONDS),
                follow_redirects=True,
            )
        return self._opened


@cache
def _trust() -> ssl.SSLContext:
    """The certificates that are trusted. Reading them takes longer than a request on a local network."""
    return httpx.create_ssl_context()
