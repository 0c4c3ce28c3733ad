"""Streams and sockets outlast what stands around their routes, but not middleware of the application."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import CoroutineType

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.edge.lasting import Lasting, leave
from app.engine.service import Service
from app.framework import FastAPI
from app.main import create_app
from app.settings import Settings
from tests.engine.doubles import WAIT, ask, forever, make_service

POST: Scope = {
    "type": "http",
    "method": "POST",
    "path": "/invocations",
    "query_string": b"",
    "headers": [(b"content-type", b"application/json")],
}
SOCKET: Scope = {"type": "websocket", "path": "/ws", "query_string": b"", "headers": [], "subprotocols": []}


class Peer:
    """The server's end of one request, and the task that answers it."""

    def __init__(self, app: ASGIApp, scope: Scope, *says: Message) -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self._says: asyncio.Queue[Message] = asyncio.Queue()
        for message in says:
            self._says.put_nowait(message)
        self.scope = dict(scope)
        self.task = asyncio.create_task(self._answer(app, self.scope))

    async def _answer(self, app: ASGIApp, scope: Scope) -> None:
        await app(scope, self._says.get, self.sent.put)

    async def until(self, mark: str) -> None:
        """Something is sent that has this in it."""
        async with asyncio.timeout(WAIT):
            while mark not in str(await self.sent.get()):
                pass

    async def ended(self) -> None:
        """The last piece is sent; a server then says that nobody is there."""
        await self.until("'more_body': False")
        self._says.put_nowait({"type": "http.disconnect"})
        async with asyncio.timeout(WAIT):
            await self.task

    def awaits(self) -> Iterator[str]:
        """The coroutines that the answer consists of, the outermost first."""
        coroutine: object = self.task.get_coro()
        while isinstance(coroutine, CoroutineType):
            yield coroutine.__qualname__
            coroutine = coroutine.cr_await


class Watching:
    """Middleware of somebody else's: what it sees of responses, and that each is done."""

    def __init__(self, app: ASGIApp, seen: list[Message]) -> None:
        self.app = app
        self.seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watch(message: Message) -> None:
            self.seen.append(message)
            await send(message)

        await self.app(scope, receive, watch)
        self.seen.append({"type": "done"})


@asynccontextmanager
async def served() -> AsyncIterator[tuple[FastAPI, Service]]:
    service = make_service(forever)
    await service.open()
    yield create_app(Settings(), service), service
    await service.drain(0)
    await service.aclose()


def posted() -> Message:
    return {"type": "http.request", "body": json.dumps(ask()).encode()}


async def test_nothing_of_routing_stands_around_a_stream() -> None:
    async with served() as (app, service):
        peer = Peer(app, POST, posted())
        await peer.until("RUN_STARTED")
        around = list(peer.awaits())
        assert [name for name in around if "Application" not in name and "FastAPI" not in name] == [
            "Peer._answer",
            "Starlette.__call__",
            "Faults.__call__",
            "RunStream.__call__",
            "Queue.get",
        ]
        assert not any(isinstance(value, AsyncExitStack) for value in peer.scope.values())
        await service.drain(0)
        await peer.ended()


async def test_nothing_of_routing_stands_around_a_socket() -> None:
    async with served() as (app, _):
        peer = Peer(app, SOCKET, {"type": "websocket.connect"})
        await peer.until("websocket.accept")
        await asyncio.sleep(0)
        around = list(peer.awaits())
        assert "Connection.serve" in around
        assert not {"WebSocketRoute.handle", "APIRouter.app"} & set(around)
        assert not any(isinstance(value, AsyncExitStack) for value in peer.scope.values())
        peer.task.cancel()
        await asyncio.wait([peer.task])


async def test_middleware_of_the_application_sees_all_of_a_stream() -> None:
    seen: list[Message] = []
    async with served() as (app, service):
        app.add_middleware(Watching, seen=seen)
        peer = Peer(app, POST, posted())
        await peer.until("RUN_STARTED")
        await service.drain(0)
        await peer.ended()
    assert [seen[0]["type"], seen[-2]["type"], seen[-1]["type"]] == [
        "http.response.start",
        "http.response.body",
        "done",
    ]
    assert any(b"RUN_ERROR" in message.get("body", b"") for message in seen)


async def test_a_mounted_applications_own_middleware_sees_all_of_its_streams() -> None:
    seen: list[Message] = []
    async with served() as (inner, service), served() as (outer, _):
        inner.add_middleware(Watching, seen=seen)
        outer.mount("/inner", inner)
        peer = Peer(outer, {**POST, "path": "/inner/invocations", "root_path": ""}, posted())
        await peer.until("RUN_STARTED")
        await service.drain(0)
        await peer.ended()
    assert (seen[0]["type"], seen[-1]["type"]) == ("http.response.start", "done")
    assert any(b"RUN_ERROR" in message.get("body", b"") for message in seen)


async def nothing() -> Message:
    raise NotImplementedError


async def test_what_is_left_is_served_when_its_endpoint_has_returned() -> None:
    done: list[str] = []

    async def lasting(_scope: Scope, _receive: Receive, _send: Send) -> None:
        done.append("lasting")

    async def endpoint(scope: Scope, _receive: Receive, _send: Send) -> None:
        leave(scope, lasting)
        done.append("endpoint")

    assert await called(endpoint) == {}
    assert done == ["endpoint", "lasting"]


async def test_what_an_endpoint_raises_is_raised_and_what_it_left_is_not_served() -> None:
    async def endpoint(scope: Scope, _receive: Receive, _send: Send) -> None:
        leave(scope, Lasting(endpoint))
        raise LookupError

    with pytest.raises(LookupError):
        await called(endpoint)


async def called(endpoint: ASGIApp) -> Scope:
    scope: Scope = {}

    async def send(message: Message) -> None:
        raise NotImplementedError(message)

    await Lasting(endpoint)(scope, nothing, send)
    return scope
