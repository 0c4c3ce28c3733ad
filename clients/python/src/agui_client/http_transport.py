"""Runs and commands as POST requests to one URL, answered by Server-Sent Events.

Rule: everything is a POST to the one URL, also the attach after a drop, because AgentCore forwards no other route. The
cursor is the last ``id:`` that arrived. An attach sends it as ``after`` in the body, because AgentCore forwards only
headers that are configured.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from functools import cache

import httpx
from ag_ui.core import RunAgentInput

from agui_client.caller import Caller
from agui_client.errors import ConnectionDropped, RunRefusedError
from agui_client.events import TERMINAL, parse_frame
from agui_client.sse import EventStreamParser
from agui_client.transport import Attach, Frame, Received, refusal, refused_response

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

    merges_deltas = False

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._silence = FOREIGN_SILENCE_SECONDS
        self._opened: httpx.AsyncClient | None = None

    async def stream(self, request: RunAgentInput | Attach) -> AsyncGenerator[Received, None]:
        """Yield the events of a run."""
        body = (
            json.dumps({"command": request.command}).encode()
            if isinstance(request, Attach)
            else request.model_dump_json(by_alias=True).encode()
        )
        async with aclosing(self._events(body)) as events:
            async for received in events:
                yield received
                if received.frame.get("type") in TERMINAL:
                    return

    async def command(self, command: Frame) -> Frame:
        """Send a command, and return its result."""
        has_ended = False
        async with aclosing(self._events(json.dumps({"command": command}).encode())) as events:
            async for received in events:
                frame = received.frame
                if frame.get("type") == "CUSTOM" and isinstance(value := frame.get("value"), dict):
                    return value
                has_ended = has_ended or frame.get("type") in TERMINAL
        if has_ended:
            raise RunRefusedError("UNKNOWN_COMMAND", f"The server does not know the command {command['type']}.")
        raise ConnectionDropped("The answer to a command broke off.")

    async def aclose(self) -> None:
        """Close all connections."""
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    async def _events(self, body: bytes) -> AsyncGenerator[Received, None]:
        """Events with their numbers. A RUN_ERROR that alone has no number belongs to no run: it is a refusal."""
        has_events = False
        async with self._response(body) as response:
            if not response.is_success:
                raise await self._error(response)
            async for data, event_id in self._frames(response):
                frame = parse_frame(data)
                seq = int(event_id) if event_id and event_id.isdecimal() else None
                if seq is None and frame.get("type") == "RUN_ERROR" and not has_events:
                    raise refusal(frame)
                has_events = True
                if seq is not None:
                    self._silence = SILENCE_SECONDS
                yield Received(frame, seq)

    @asynccontextmanager
    async def _response(self, body: bytes) -> AsyncGenerator[httpx.Response, None]:
        """Send a request and give its response, whose head has arrived. Raises ``ConnectionDropped``."""
        address = await self._caller.address()
        headers = {**address.headers, "Content-Type": "application/json", "Accept": "text/event-stream"}
        request = self._client.build_request("POST", address.url, content=body, headers=headers)
        try:
            async with asyncio.timeout(self._silence):
                response = await self._client.send(request, auth=address.sigv4, stream=True)
        except TimeoutError as error:
            raise ConnectionDropped(f"The server was silent for {self._silence:g} s.") from error
        except httpx.TransportError as error:
            place, cause = request.url.netloc.decode(), str(error) or type(error).__name__
            was_sent = not isinstance(error, NOT_SENT)
            raise ConnectionDropped(f"The request to {place} failed: {cause}", was_sent=was_sent) from error
        try:
            yield response
        finally:
            await response.aclose()

    async def _frames(self, response: httpx.Response) -> AsyncGenerator[tuple[str, str | None], None]:
        """Data and id of each event in a response. Raises ``ConnectionDropped`` if it breaks off or is silent."""
        parser = EventStreamParser()
        chunks = response.aiter_bytes()
        while True:
            try:
                async with asyncio.timeout(self._silence):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise ConnectionDropped(f"The server was silent for {self._silence:g} s.") from error
            except httpx.TransportError as error:
                raise ConnectionDropped("The response broke off.") from error
            if chunk is None:
                return
            for event in parser.feed(chunk):
                yield event.data, event.id

    async def _error(self, response: httpx.Response) -> Exception:
        """The error of a response that is no success: the server's if its body has one, else a gateway's."""
        try:
            async with asyncio.timeout(self._silence):
                body = await response.aread()
        except (TimeoutError, httpx.TransportError):
            body = b""
        return refused_response(response.status_code, body)

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
