"""HTTP transport of the chat completions API: one request, and the server-sent events of its answer.

Rules: this is the only module that knows the HTTP client. The first call imports it in a thread, because loading the
client and the certificates would block the event loop. Every failure becomes a ``ModelFailure``. Ending the iteration
closes the connection.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress

import httpx
from httpx_sse import EventSource

from agui_container.models.failures import ModelFailure, RetryPolicy, retry_after
from agui_container.models.openai.failures import (
    MAX_LOGGED_START,
    failure_of,
    parse_error_body,
    unreadable_answer,
    web_page,
)
from agui_container.protocol.errors import ErrorCode

EVENT_STREAM = "text/event-stream"

MAX_ERROR_BODY = 64_000
"""Bytes that are read of the body of an error response."""


class Transport:
    def __init__(self, url: str, headers: Mapping[str, str], retry_policy: RetryPolicy) -> None:
        self._url = url
        self._client = httpx.AsyncClient(
            headers={
                "accept": EVENT_STREAM,
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

    async def events(self, body: bytes) -> AsyncGenerator[str, None]:
        """Yield the data of the answer's events. Raises ``ModelFailure``."""
        try:
            async with self._client.stream("POST", self._url, content=body) as response:
                await _refuse(response)
                # some servers name another content type, or none
                whole = httpx.Response(200, headers={"content-type": EVENT_STREAM}, content=_with_blank_line(response))
                async with aclosing(EventSource(whole).aiter_sse()) as events:
                    async for event in events:
                        if event.data:
                            yield event.data
        except httpx.RequestError as error:
            raise connection_failure(error) from error


async def _with_blank_line(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Yield the body and the blank line behind its last event, which relays such as new-api leave out."""
    async for data in response.aiter_bytes():
        yield data
    yield b"\n\n"


async def _refuse(response: httpx.Response) -> None:
    """Raise ``ModelFailure`` for an error, and for a web page or a document in place of a stream."""
    if response.status_code != httpx.codes.OK:
        body = await _start_of(response, MAX_ERROR_BODY)
        raise failure_of(response.status_code, parse_error_body(body), retry_after(response.headers))
    kind = response.headers.get("content-type", "")
    if "html" in kind or "json" in kind:
        start = await _start_of(response, MAX_LOGGED_START)
        raise web_page(start) if "html" in kind else unreadable_answer(start.decode(errors="replace"))


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
