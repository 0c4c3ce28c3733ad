"""The HTTP side: one request, and the events of its answer. The only module that knows the HTTP client.

Rule: it is imported when the first call is made, in a thread: the client and the certificates take tens of
milliseconds. Whatever fails becomes a ``ModelFailure``; leaving the iteration closes the connection.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence

import httpx

from app.core.errors import Code
from app.models.openai.failures import ModelFailure, complaint_of, failure_of
from app.models.openai.patience import Patience, asked_wait
from app.models.openai.sse import MAX_EVENT, EventTooLong, SseReader

MAX_COMPLAINT = 64_000
"""Bytes that are read of a refusal's body."""


class Transport:
    """Connections to one server, shared by all calls.

    Args:
        url: of the chat completions.
        headers: of every request; they hold the key.
    """

    def __init__(self, url: str, headers: Mapping[str, str], patience: Patience) -> None:
        self._url = url
        self._client = httpx.AsyncClient(
            headers={
                "accept": "text/event-stream",
                "accept-encoding": "identity",  # a compressed stream comes in lumps
                "content-type": "application/json",
                **headers,
            },
            timeout=httpx.Timeout(patience.read, connect=patience.connect, write=patience.write, pool=patience.connect),
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
                    raise ModelFailure(Code.MODEL_NOT_FOUND)
                reading = _whole(response) if kind == "application/json" else _streamed(response)
                async for events in reading:
                    yield events
        except httpx.RequestError as error:
            raise failure_in(error) from error
        except EventTooLong as error:
            raise ModelFailure(Code.MODEL_ERROR, "The model sent more than can be read.") from error


async def _refusal(response: httpx.Response) -> ModelFailure:
    complaint = complaint_of(await _start_of(response, MAX_COMPLAINT))
    return failure_of(response.status_code, complaint, asked_wait(response.headers))


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
        return ModelFailure(Code.MODEL_TIMEOUT)
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
        return ModelFailure(Code.MODEL_UNAVAILABLE, retry=True)
    if isinstance(error, httpx.TransportError):
        return ModelFailure(Code.MODEL_UNAVAILABLE, "The connection to the model broke.", retry=True)
    return ModelFailure(Code.MODEL_ERROR)
