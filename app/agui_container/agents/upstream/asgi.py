"""An ASGI application in this process as a transport of httpx, whose answers stream.

Rules:

- A request is one task of the application. Closing a response before its end sends the application a disconnect and
  ends the task. After the end of its response the application may go on, for example with background tasks.
- At most ``PIECES`` pieces of a body wait for their reader. Then ``send`` waits, as on a socket.
- The application's lifespan begins with the first request and ends with ``aclose``. An application without lifespan is
  served without it.

Source: ASGI specification 3.0. ``httpx.ASGITransport`` collects a whole body before it returns the response.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, cast

import httpx

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

logger = logging.getLogger(__name__)

PIECES = 16

CLOSE_SECONDS = 5.0
"""Seconds that ``aclose`` waits for requests that go on after their response."""

IN_PROCESS_HOST = "localhost"
"""Host name in the requests to an application. Middleware that checks host names accepts it."""


class AsgiTransport(httpx.AsyncBaseTransport):
    def __init__(self, app: Application) -> None:
        self._app = app
        self._lifespan = Lifespan(app)
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response as soon as it begins. Raises ``httpx.ConnectError`` if the application failed before."""
        await self._lifespan.start()
        exchange = Exchange(await request.aread())
        exchange.task = asyncio.create_task(exchange.serve(self._app, scope_of(request, self._lifespan.state)))
        self._tasks.add(exchange.task)
        exchange.task.add_done_callback(self._tasks.discard)
        try:
            start = await exchange.response_start()
        except BaseException:
            await exchange.aclose()
            raise
        return httpx.Response(start["status"], headers=list(start.get("headers", ())), stream=exchange)

    async def aclose(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        await self._lifespan.stop()


class Exchange(httpx.AsyncByteStream):
    """One request and its response. Iterating gives the body of the response."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue(PIECES)
        self._disconnected = asyncio.Event()
        self._failure: Exception | None = None
        self._is_complete = False
        self.task: asyncio.Task[None] | None = None

    async def serve(self, app: Application, scope: MutableMapping[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._messages.put)
        except Exception as error:
            self._failure = error
            if self._is_complete:
                logger.exception("application failed after its response")
        finally:
            self._disconnected.set()
        await self._messages.put(None)

    async def response_start(self) -> Message:
        message = await self._messages.get()
        if message is None or message["type"] != "http.response.start":
            raise httpx.ConnectError("the application ended without a response") from self._failure
        return message

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (message := await self._messages.get()) is not None:
            if body := message.get("body", b""):
                yield body
            if not message.get("more_body", False):
                self._is_complete = True
                return
        raise httpx.ReadError("the application ended within its response") from self._failure

    async def aclose(self) -> None:
        """Tell the application that its client is gone, and end its task unless its response is complete."""
        self._disconnected.set()
        if self.task is not None and not self._is_complete:
            self.task.cancel()
            await asyncio.wait([self.task])

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._disconnected.wait()
        return {"type": "http.disconnect"}


class Lifespan:
    """The lifespan of an application: begun once, ended once. ``state`` is what the startup has left for requests."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._startup: asyncio.Task[Message] | None = None
        self._requests: asyncio.Queue[Message] = asyncio.Queue()
        self._answers: asyncio.Queue[Message] = asyncio.Queue()
        self.state: dict[str, Any] = {}

    async def start(self) -> None:
        """Wait for the startup. Raises ``httpx.ConnectError`` if it failed; the next request begins another one."""
        async with self._lock:
            if self._task is None or self._startup is None:
                self._requests, self._answers = asyncio.Queue(), asyncio.Queue()  # a failed startup leaves an answer
                self._task = asyncio.create_task(self._run())
                self._startup = asyncio.create_task(self._ask("lifespan.startup"))
            answer = await asyncio.shield(self._startup)  # a cancelled run must not end the startup of all others
            if answer["type"] == "lifespan.startup.failed":
                await asyncio.wait([self._task])
                self._task = None
                raise httpx.ConnectError(f"the startup of the application failed: {answer.get('message', '')}")

    async def stop(self) -> None:
        async with self._lock:
            if self._task is not None:
                await self._ask("lifespan.shutdown")
                await self._task
                self._task = None

    async def _ask(self, kind: str) -> Message:
        await self._requests.put({"type": kind})
        return await self._answers.get()

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        with suppress(Exception):  # by the specification: an application that raises has no lifespan
            await self._app(scope, self._requests.get, self._answers.put)
        await self._answers.put({"type": "lifespan.unsupported"})


def scope_of(request: httpx.Request, state: Mapping[str, Any]) -> MutableMapping[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 0),
        "state": dict(state),
    }


def post_paths(app: object, prefix: str = "") -> Iterator[str]:
    """Yield the paths of POST routes, also those of mounted applications and of FastAPI's included routers."""
    for route in cast("list[object]", getattr(app, "routes", [])):
        included: object = getattr(route, "effective_route_contexts", None)  # FastAPI 0.165; 0.135 copies the routes
        for context in cast("Iterable[object]", included()) if callable(included) else (route,):
            each: object = getattr(context, "starlette_route", None) or context
            path = prefix + getattr(each, "path", "")
            if "POST" in (getattr(each, "methods", None) or ()):
                yield path
            yield from post_paths(each, path)
