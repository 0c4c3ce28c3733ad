"""The driver of WebSockets: connections to a server on this machine, and their frames as JSON."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import websockets.sync.client as blocking
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.engine.doubles import WAIT, Json
from tests.sse import events_of


def socket_to(server: str | int, path: str = "/ws", **options: Any) -> connect:  # noqa: ANN401 - as the library takes them
    url = f"ws://127.0.0.1:{server}" if isinstance(server, int) else server.replace("http", "ws", 1)
    return connect(url + path, **{"max_size": None, "open_timeout": WAIT, "proxy": None, **options})


def blocking_socket_to(url: str, headers: Json | None = None) -> blocking.ClientConnection:
    return blocking.connect(url, additional_headers=headers, open_timeout=WAIT, close_timeout=WAIT, proxy=None)


class RefusedHandshake(NamedTuple):
    status: int
    event: Json
    headers: Json


async def refused_handshake(server: str | int, path: str = "/ws", **options: Any) -> RefusedHandshake:  # noqa: ANN401 - as above
    with pytest.raises(InvalidStatus) as refused:
        await socket_to(server, path, **options)
    response = refused.value.response
    (event,) = events_of(bytes(response.body))
    return RefusedHandshake(response.status_code, event, dict(response.headers.raw_items()))


def blocking_receive(connection: blocking.ClientConnection) -> Json:
    frame: Json = json.loads(connection.recv(WAIT))
    return frame


def blocking_receive_until(connection: blocking.ClientConnection, wanted: Callable[[Json], bool]) -> list[Json]:
    frames = [blocking_receive(connection)]
    while not wanted(frames[-1]):
        frames.append(blocking_receive(connection))
    return frames


async def send(connection: ClientConnection, *bodies: Json | str | bytes) -> None:
    for body in bodies:
        await connection.send(json.dumps(body) if isinstance(body, dict) else body)


async def receive_frame(connection: ClientConnection) -> Json:
    async with asyncio.timeout(WAIT):
        frame: Json = json.loads(await connection.recv(decode=True))
    assert ("control" in frame) != ("type" in frame)
    return frame


async def receive(connection: ClientConnection, count: int) -> list[Json]:
    return [await receive_frame(connection) for _ in range(count)]


async def receive_until(connection: ClientConnection, wanted: Callable[[Json], bool]) -> list[Json]:
    frames = [await receive_frame(connection)]
    while not wanted(frames[-1]):
        frames.append(await receive_frame(connection))
    return frames
