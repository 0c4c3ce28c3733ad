"""Server-sent events as model servers write them: bytes in, the data of each event out.

Rules: pure; the same events whatever the cuts between the bytes. LF, CRLF and CR end lines; comments, events without
data and fields other than ``data`` are skipped. Two liberties: the field ``error``, as older llama.cpp servers name it,
is read as data, and ``finish`` gives an event whose closing empty line never came.

The HTTP side: one request, and the events of its answer. The only module that knows the HTTP client.

Rule: it is imported when the first call is made, in a thread: the client and the certificates take tens of
milliseconds. Whatever fails becomes a ``ModelFailure``; leaving the iteration closes the connection.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence

import httpx

from agui_container.models.openai.failures import ModelFailure, failure_of, parse_error_body
from agui_container.models.openai.retry_policy import RetryPolicy, retry_after
from agui_container.protocol.errors import ErrorCode

MAX_EVENT = 16_000_000
"""Bytes of one event; a server that sends more is broken, and must not fill the memory."""

_FIELDS = (b"data", b"error")


class EventTooLong(Exception):
    """One event holds more than ``MAX_EVENT`` bytes."""


class SseReader:
    """Reads one stream."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that is not ended yet
        self._data: list[bytes] = []  # of the event that is not ended yet
        self._size = 0
        self._after_cr = False

    def feed(self, data: bytes) -> Sequence[bytes]:
        """The data of every event that ends in these bytes.

        Raises:
            EventTooLong: an event is beyond reason.
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
        """The event that the end of the stream cut off from its empty line, if there is one."""
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
            if field in _FIELDS:
                self._data.append(value.removeprefix(b" "))
        return events

    def _with_lf_only(self, data: bytes) -> bytes:
        """Turn every line end into LF. A CR at the end counts at once; the LF that may follow it is then dropped."""
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


MAX_COMPLAINT = 64_000
"""Bytes that are read of a refusal's body."""


class Transport:
    """Connections to one server, shared by all calls.

    Args:
        url: of the chat completions.
        headers: of every request; they hold the key.
    """

    def __init__(self, url: str, headers: Mapping[str, str], retry_policy: RetryPolicy) -> None:
        self._url = url
        self._client = httpx.AsyncClient(
            headers={
                "accept": "text/event-stream",
                "accept-encoding": "identity",  # a compressed stream comes in lumps
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
        """Send one request; give the data of the answer's events, as many at a time as have come.

        Raises:
            ModelFailure: the server cannot be reached, refuses, or breaks off.
        """
        try:
            async with self._client.stream("POST", self._url, content=body) as response:
                if response.status_code != httpx.codes.OK:
                    raise await _refusal(response)
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind == "text/html":
                    raise ModelFailure(ErrorCode.MODEL_NOT_FOUND)
                reading = _whole(response) if kind == "application/json" else _streamed(response)
                async for events in reading:
                    yield events
        except httpx.RequestError as error:
            raise failure_in(error) from error
        except EventTooLong as error:
            raise ModelFailure(ErrorCode.MODEL_ERROR, "The model sent more than can be read.") from error


async def _refusal(response: httpx.Response) -> ModelFailure:
    error_body = parse_error_body(await _start_of(response, MAX_COMPLAINT))
    return failure_of(response.status_code, error_body, retry_after(response.headers))


async def _streamed(response: httpx.Response) -> AsyncGenerator[Sequence[bytes], None]:
    sse = SseReader()
    async for data in response.aiter_bytes():
        events = sse.feed(data)
        if events:
            yield events
    rest = sse.finish()
    if rest:
        yield rest


async def _whole(response: httpx.Response) -> AsyncGenerator[Sequence[bytes], None]:
    """A server that does not stream: its whole answer as one event."""
    body = await _start_of(response, MAX_EVENT)
    if len(body) >= MAX_EVENT:
        raise EventTooLong
    yield (body,)


async def _start_of(response: httpx.Response, limit: int) -> bytes:
    """The first bytes of a body; of a refusal, what comes of them before the connection breaks."""
    pieces, size = [], 0
    try:
        async for data in response.aiter_bytes():
            pieces.append(data)
            size += len(data)
            if size >= limit:
                break
    except httpx.RequestError:
        if response.status_code == httpx.codes.OK:
            raise
    return b"".join(pieces)[:limit]


def failure_in(error: httpx.RequestError) -> ModelFailure:
    """What a broken connection means. Only a silent server is not asked again: it may still be at work."""
    if isinstance(error, httpx.ReadTimeout):
        return ModelFailure(ErrorCode.MODEL_TIMEOUT)
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
        return ModelFailure(ErrorCode.MODEL_UNAVAILABLE, retry=True)
    if isinstance(error, httpx.TransportError):
        return ModelFailure(ErrorCode.MODEL_UNAVAILABLE, "The connection to the model broke.", retry=True)
    return ModelFailure(ErrorCode.MODEL_ERROR)
