"""Connections without sockets."""

import asyncio
import base64
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import TypeVar

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from agui_container.server.uvicorn_protocols import HttpProtocol

P = TypeVar("P", bound=HttpToolsProtocol | WebSocketsSansIOProtocol)

HEAD = b"GET / HTTP/1.1\r\nhost: here\r\n"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nhost: here\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: " + base64.b64encode(bytes(16)) + b"\r\n"
)
WAIT_SECONDS = 120.0


class RecordingTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__({"peername": ("here", 1), "sockname": ("here", 2), "socket": None})
        self.written = b""
        self.closed = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.closed.set()

    def abort(self) -> None:
        self.closed.set()

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class EchoingApp:
    """An application that answers with the body of the request, and records the scope."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        body, is_more = b"", True
        while is_more:
            message = await receive()
            body, is_more = body + message["body"], message["more_body"]
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@cache
def loaded_configuration(keep_alive: int) -> uvicorn.Config:
    """A configuration without an application. uvicorn takes longer to load one than to answer many requests."""
    config = uvicorn.Config(EchoingApp(), log_config=None, timeout_keep_alive=keep_alive, ws="websockets-sansio")
    config.load()
    return config


def configuration(app: ASGIApp, keep_alive: int = 75) -> uvicorn.Config:
    config = copy(loaded_configuration(keep_alive))
    config.app = config.loaded_app = app
    return config


def connect(protocol: type[P], app: ASGIApp, transport: RecordingTransport, keep_alive: int = 75) -> P:
    connection = protocol(configuration(app, keep_alive), ServerState(), {})
    connection.connection_made(transport)
    return connection


def connect_http(app: ASGIApp, transport: RecordingTransport, keep_alive: int = 75) -> HttpProtocol:
    return connect(HttpProtocol, app, transport, keep_alive)


async def until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not is_true():  # noqa: ASYNC110 - nothing announces the change
            await asyncio.sleep(0)
