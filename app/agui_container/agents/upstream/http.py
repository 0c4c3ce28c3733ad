"""An AG-UI server at a URL, or an ASGI application in this process, as the upstream of an agent.

Rules:

- Statuses, texts and addresses of the server stay in the log. A client reads one sentence.
- Closing the stream closes the connection, so the server stops its model.
- Headers of the caller are sent only if the settings name them, and to no other origin.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress

import httpx
from ag_ui.core import BaseEvent, RunAgentInput, RunErrorEvent, RunFinishedEvent, RunStartedEvent
from httpx_sse import EventSource, ServerSentEvent

from agui_client.agentcore import SESSION_HEADER
from agui_container.agents.upstream import UpstreamOptions
from agui_container.agents.upstream.crewai import with_answers, with_own_questions
from agui_container.agents.upstream.events import EventReader, UpstreamFault
from agui_container.log_values import format_fields, mask_passwords
from agui_container.ports import RunContext
from agui_container.protocol.errors import AppError, ErrorCode

CONNECT_SECONDS = 10.0
REST_SECONDS = 5.0
"""Seconds for the end of a body after RUN_FINISHED."""

REDIRECTS = 5
LOGGED_CHARACTERS = 1000
"""Characters of a refusal that the log shows."""

EVENT_STREAM = "text/event-stream"
HEADERS = {"accept": EVENT_STREAM, "content-type": "application/json"}


class HttpUpstream:
    """Implements ``Upstream`` with the AG-UI server at a URL. ``transport`` reaches it if that is not a socket."""

    def __init__(
        self,
        url: str,
        options: UpstreamOptions,
        transport: httpx.AsyncBaseTransport | None = None,
        auth: httpx.Auth | None = None,
    ) -> None:
        self._url = url
        self._options = options
        self._transport = transport
        self._auth = auth
        self._client: httpx.AsyncClient | None = None
        options.closers.append(self.aclose)

    async def answer(self, request: RunAgentInput, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
        with failures_as_agent_errors(self._url, ctx):
            async with aclosing(self._events(request, ctx)) as events:
                async for event in events:
                    yield event

    async def aclose(self) -> None:
        """Close the connections, and end the lifespan of an application in this process."""
        if self._client is not None:
            await self._client.aclose()

    async def _events(self, request: RunAgentInput, ctx: RunContext) -> AsyncGenerator[BaseEvent, None]:
        reader = EventReader(ctx, ctx.thread_key, ctx.thread_id, self._options.keeps_raw)
        body = body_of(with_answers(request), ctx.thread_key)
        async with self._post(body, ctx) as response, aclosing(EventSource(whole(response)).aiter_sse()) as stream:
            async for part in stream:
                event = reader.read(part.data) if part.data else None
                if isinstance(event, RunErrorEvent):
                    ctx.usage.extend(event.usage or ())
                    raise UpstreamFault(f"RUN_ERROR {event.code or ''}: {event.message}")
                if event is not None and not isinstance(event, RunStartedEvent):
                    yield with_own_questions(event, ctx)
                if isinstance(event, RunFinishedEvent):
                    await read_rest(stream)
                    return
        raise UpstreamFault("the stream ended without a terminal event")

    @asynccontextmanager
    async def _post(self, body: bytes, ctx: RunContext) -> AsyncIterator[httpx.Response]:
        """Follow redirects that keep the method. Raises ``UpstreamFault`` or ``httpx.HTTPError``."""
        if self._client is None:
            timeout = httpx.Timeout(CONNECT_SECONDS, read=None)
            limits = httpx.Limits(max_connections=None)
            self._client = httpx.AsyncClient(transport=self._transport, auth=self._auth, timeout=timeout, limits=limits)
        passed_on = {name: ctx.caller.headers[name] for name in self._options.headers if name in ctx.caller.headers}
        own = {**HEADERS, SESSION_HEADER: ctx.thread_key}
        request = self._client.build_request("POST", self._url, content=body, headers={**passed_on, **own})
        for _ in range(REDIRECTS):
            response = await self._client.send(request, stream=True)
            async with aclosing(response):
                if response.status_code not in {307, 308} or response.next_request is None:
                    await refuse_failure(response)
                    yield response
                    return
            following = response.next_request
            if origin_of(following.url) != origin_of(request.url):
                for name in passed_on:
                    following.headers.pop(name, None)
            request = following
        raise UpstreamFault(f"more than {REDIRECTS} redirects")


def body_of(request: RunAgentInput, thread_id: str) -> bytes:
    """Return the JSON of a request. Servers before 1.0 refuse an input without ``state``, ``tools`` and the others."""
    document = request.model_dump(mode="json", by_alias=True, exclude_none=True)
    defaults: dict[str, object] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    own = {"threadId": thread_id, "state": {} if request.state is None else request.state}
    return json.dumps(defaults | document | own).encode()


@contextmanager
def failures_as_agent_errors(url: str, ctx: RunContext) -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, UpstreamFault) as error:
        fields = {"run": ctx.run_id, "url": mask_passwords(url), "error": f"{type(error).__name__}: {error}"}
        ctx.logger.warning("upstream failed %s", format_fields(fields))
        raise AppError(ErrorCode.AGENT_ERROR, "The agent's server failed.") from error


async def read_rest(stream: AsyncIterator[ServerSentEvent]) -> None:
    """Read to the end of the body. A server may work on after its last event, and a closed connection would stop it."""
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(REST_SECONDS):
            async for _ in stream:
                pass


def whole(response: httpx.Response) -> httpx.Response:
    """Return the response with what some servers leave out: the content type, and the blank line of the last event."""

    async def body() -> AsyncIterator[bytes]:
        async for part in response.aiter_bytes():
            yield part
        yield b"\n\n"

    return httpx.Response(response.status_code, headers={"content-type": EVENT_STREAM}, content=body())


async def refuse_failure(response: httpx.Response) -> None:
    """Raise ``UpstreamFault`` for an error, and for a web page or a document in place of a stream."""
    kind = response.headers.get("content-type", "")
    if response.is_success and "html" not in kind and "json" not in kind:
        return
    text = ""
    async for part in response.aiter_text():
        text += part
        if len(text) >= LOGGED_CHARACTERS:
            break
    raise UpstreamFault(f"status {response.status_code}: {text[:LOGGED_CHARACTERS]}")


def origin_of(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
