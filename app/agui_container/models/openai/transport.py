"""HTTP transport of the chat completions API: one request, and the server-sent events of its answer.

Rules: this is the only module that knows the HTTP client. The first call imports it in a thread, because loading the
client and the certificates would block the event loop. Every failure becomes a ``ModelFailure``. Ending the iteration
closes the connection.

``SseReader`` is pure and returns the same events however the bytes are split. LF and CRLF end lines. Comments, events
without data, and fields other than ``data`` are skipped. There are two extensions of the format: the field ``error`` of
older llama.cpp servers counts as data, and ``finish`` returns an event without its closing empty line.

Source: "Server-sent events" in the HTML Standard.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress

import httpx

from agui_container.models.failures import ModelFailure, RetryPolicy, retry_after
from agui_container.models.openai.failures import (
    MAX_LOGGED_START,
    failure_of,
    parse_error_body,
    unreadable_answer,
    web_page,
)
from agui_container.protocol.errors import ErrorCode

_DATA_FIELDS = (b"data", b"error")


class SseReader:
    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the unfinished line
        self._data: list[bytes] = []  # of the unfinished event
        self._start = b""
        self._has_events = False

    def feed(self, data: bytes) -> Sequence[bytes]:
        """Return the data of every event that ends in ``data``."""
        if not self._has_events and len(self._start) < MAX_LOGGED_START:
            self._start = (self._start + data)[:MAX_LOGGED_START]
        if b"\n" not in data:
            self._pieces.append(data)
            return ()
        *lines, rest = b"".join((*self._pieces, data)).split(b"\n")
        self._pieces = [rest]
        return self._events(lines)

    def finish(self) -> Sequence[bytes]:
        """Return the last event if it lacks its closing line. Raises ``ModelFailure``, for a web page, too."""
        events = self._events([b"".join(self._pieces), b""])
        start = self._start.strip()
        if self._has_events or not start or start.startswith(b":"):
            return events
        raise web_page(start) if start.startswith(b"<") else unreadable_answer(start)

    def _events(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        events: list[bytes] = []
        for each in lines:
            line = each.removesuffix(b"\r")
            if not line:
                event = b"\n".join(self._data)
                if event:
                    self._has_events = True
                    events.append(event)
                self._data = []
                continue
            field, _, value = line.partition(b":")
            if field in _DATA_FIELDS:
                self._data.append(value.removeprefix(b" "))
        return events


MAX_ERROR_BODY = 64_000
"""Bytes that are read of the body of an error response."""


class Transport:
    def __init__(self, url: str, headers: Mapping[str, str], retry_policy: RetryPolicy) -> None:
        self._url = url
        self._client = httpx.AsyncClient(
            headers={
                "accept": "text/event-stream",
                "accept-encoding": "identity",  # compression would delay events
                "content-type": "application/json",
                **headers,
            },
            timeout=httpx.Timeout(
                retry_policy.read, connect=retry_policy.connect, write=retry_policy.write, pool=retry_policy.connect
            ),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def events(self, body: bytes) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield the data of the answer's events, in batches as they arrive. Raises ``ModelFailure``."""
        try:
            async with self._client.stream("POST", self._url, content=body) as response:
                if response.status_code != httpx.codes.OK:
                    raise await _error_response(response)
                reader = SseReader()
                async for data in response.aiter_bytes():
                    events = reader.feed(data)
                    if events:
                        yield events
                yield reader.finish()
        except httpx.RequestError as error:
            raise connection_failure(error) from error


async def _error_response(response: httpx.Response) -> ModelFailure:
    body = await _start_of(response, MAX_ERROR_BODY)
    return failure_of(response.status_code, parse_error_body(body), retry_after(response.headers))


async def _start_of(response: httpx.Response, limit: int) -> bytes:
    pieces, size = [], 0
    with suppress(httpx.RequestError):
        async for data in response.aiter_bytes():
            pieces.append(data)
            size += len(data)
            if size >= limit:
                break
    return b"".join(pieces)[:limit]


def connection_failure(error: httpx.RequestError) -> ModelFailure:
    """A read timeout is not retried, because the server may still be working on the request."""
    if isinstance(error, httpx.ReadTimeout):
        return ModelFailure(ErrorCode.MODEL_TIMEOUT)
    if isinstance(error, httpx.TransportError):
        return ModelFailure(ErrorCode.MODEL_UNAVAILABLE, is_retryable=True)
    return ModelFailure(ErrorCode.MODEL_ERROR)
