"""HTTP transport of the chat completions API: one request, and the server-sent events of its answer.

Rules: this is the only module that knows the HTTP client. The first call imports it in a thread, because loading the
client and the certificates would block the event loop. Every failure becomes a ``ModelFailure``. Ending the iteration
closes the connection.

``SseReader`` is pure and returns the same events however the bytes are split. LF, CRLF and CR end lines. A byte
order mark, comments, events without data, and fields other than ``data`` are skipped. There are two extensions of the
format: the field ``error`` of older llama.cpp servers counts as data, and ``finish`` returns an event without its
closing empty line.

The format of an answer is recognised by its first byte, because servers and proxies label it wrongly: one that begins
with ``{`` or ``[`` is JSON, one value or one per line, and any other is a stream of events.

Source: "Server-sent events" in the HTML Standard.
"""

from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress

import httpx
from pydantic_core import from_json

from agui_container.models.openai.failures import (
    MAX_LOGGED_START,
    ModelFailure,
    RetryPolicy,
    failure_of,
    parse_error_body,
    unreadable_answer,
    web_page,
)
from agui_container.models.retry_after import retry_after
from agui_container.protocol.errors import ErrorCode

MAX_EVENT = 16_000_000
"""Largest size of one event in bytes. The limit keeps a broken server from filling the memory."""

_DATA_FIELDS = (b"data", b"error")


class EventTooLong(Exception):
    """One event holds more than ``MAX_EVENT`` bytes."""


class SseReader:
    """Incremental parser of one stream of server-sent events."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the unfinished line
        self._data: list[bytes] = []  # of the unfinished event
        self._size = 0
        self._after_cr = False

    def feed(self, data: bytes) -> Sequence[bytes]:
        """Return the data of every event that ends in ``data``.

        Raises:
            EventTooLong: an event is larger than ``MAX_EVENT``.
        """
        if data and (self._after_cr or b"\r" in data):
            data = self._with_lf_only(data)
        if b"\n" not in data:
            self._pieces.append(data)
            self._size += len(data)
            events: Sequence[bytes] = ()
        else:
            *lines, rest = b"".join((*self._pieces, data)).split(b"\n")
            events = self._events(lines)
            self._pieces = [rest]
            self._size = len(rest) + sum(map(len, self._data))
        if self._size > MAX_EVENT:
            raise EventTooLong
        return events

    def finish(self) -> Sequence[bytes]:
        """End the stream. Return the last event if it lacks its closing empty line."""
        return self._events([b"".join(self._pieces), b""])

    def _events(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        events: list[bytes] = []
        for line in lines:
            if not line:
                event = b"\n".join(self._data)
                if event:
                    events.append(event)
                self._data = []
                continue
            field, _, value = line.partition(b":")
            if field in _DATA_FIELDS:
                self._data.append(value.removeprefix(b" "))
        return events

    def _with_lf_only(self, data: bytes) -> bytes:
        """Turn every line end into LF. A trailing CR ends its line at once; an LF that follows it is dropped."""
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class JsonReader:
    """Incremental parser of a body that is one JSON value, or one value per line (NDJSON)."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the unfinished value
        self._size = 0
        self._has_lines: bool | None = None  # None before the first line has ended

    def feed(self, data: bytes) -> Sequence[bytes]:
        """Return the values whose lines end in ``data``. A single value is returned by ``finish``.

        Raises:
            EventTooLong: a value is larger than ``MAX_EVENT``.
        """
        self._pieces.append(data)
        self._size += len(data)
        if self._size > MAX_EVENT:
            raise EventTooLong
        if b"\n" not in data or self._has_lines is False:
            return ()
        *lines, rest = b"".join(self._pieces).split(b"\n")
        if self._has_lines is None:
            self._has_lines = _is_json(lines[0])
        if not self._has_lines:
            return ()
        self._pieces, self._size = [rest], len(rest)
        return [line for line in lines if line.strip()]

    def finish(self) -> Sequence[bytes]:
        """End the body. Return the rest, if it is not blank."""
        rest = b"".join(self._pieces)
        return [rest] if rest.strip() else []


def _is_json(line: bytes) -> bool:
    try:
        from_json(line)
    except ValueError:
        return False
    return True


class AnswerReader:
    """Incremental parser of an answer whose format is known by its first byte."""

    def __init__(self) -> None:
        self._start = b""
        self._reader: SseReader | JsonReader | None = None
        self._has_events = False

    def feed(self, data: bytes) -> Sequence[bytes]:
        """Return the events that end in ``data``.

        Raises:
            EventTooLong: an event is larger than ``MAX_EVENT``.
        """
        if self._reader is not None:
            events = self._reader.feed(data)
        else:
            self._start += data
            first = self._start.removeprefix(BOM_UTF8).lstrip()[:1]
            if not first or BOM_UTF8.startswith(self._start):
                return ()
            self._reader = JsonReader() if first in (b"{", b"[") else SseReader()
            events = self._reader.feed(self._start.removeprefix(BOM_UTF8))
            self._start = self._start[:MAX_LOGGED_START]
        self._has_events = self._has_events or bool(events)
        return events

    def finish(self) -> Sequence[bytes]:
        """End the answer. Return its last events.

        Raises:
            ModelFailure: the answer is no stream and no JSON. A web page is told by its first byte.
        """
        events = self._reader.finish() if self._reader else ()
        if events or self._has_events or not self._start.strip() or self._start.startswith(b":"):
            return events
        raise web_page(self._start) if self._start.lstrip().startswith(b"<") else unreadable_answer(self._start)


MAX_ERROR_BODY = 64_000
"""Bytes that are read of the body of an error response."""


class Transport:
    """Connections to one server, shared by all calls.

    Args:
        url: URL of the chat completions endpoint.
        headers: headers of every request, with the API key.
        retry_policy: source of the timeouts.
    """

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
        """Close every connection."""
        await self._client.aclose()

    async def events(self, body: bytes) -> AsyncGenerator[Sequence[bytes], None]:
        """Send one request and yield the data of the answer's events, in batches as they arrive.

        Raises:
            ModelFailure: the server cannot be reached, answers with an error, or closes the connection too early.
        """
        try:
            async with self._client.stream("POST", self._url, content=body) as response:
                if response.status_code != httpx.codes.OK:
                    raise await _error_response(response)
                reader = AnswerReader()
                async for data in response.aiter_bytes():
                    events = reader.feed(data)
                    if events:
                        yield events
                yield reader.finish()
        except httpx.RequestError as error:
            raise connection_failure(error) from error
        except EventTooLong as error:
            raise ModelFailure(ErrorCode.MODEL_ERROR, "The model sent an event that is too large.") from error


async def _error_response(response: httpx.Response) -> ModelFailure:
    body = await _start_of(response, MAX_ERROR_BODY)
    return failure_of(response.status_code, parse_error_body(body), retry_after(response.headers))


async def _start_of(response: httpx.Response, limit: int) -> bytes:
    """Return the first ``limit`` bytes of an error response, or fewer if the connection breaks."""
    pieces, size = [], 0
    with suppress(httpx.RequestError):
        async for data in response.aiter_bytes():
            pieces.append(data)
            size += len(data)
            if size >= limit:
                break
    return b"".join(pieces)[:limit]


def connection_failure(error: httpx.RequestError) -> ModelFailure:
    """Return the failure that an error of the connection means.

    A read timeout is not retried, because the server may still be working on the request.
    """
    if isinstance(error, httpx.ReadTimeout):
        return ModelFailure(ErrorCode.MODEL_TIMEOUT)
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
        return ModelFailure(ErrorCode.MODEL_UNAVAILABLE, is_retryable=True)
    if isinstance(error, httpx.TransportError):
        return ModelFailure(ErrorCode.MODEL_UNAVAILABLE, "The connection to the model broke.", is_retryable=True)
    return ModelFailure(ErrorCode.MODEL_ERROR)
