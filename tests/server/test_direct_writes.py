"""Tokens are written directly to the connection where nothing wraps ``send``."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from unittest.mock import AsyncMock

import pytest
from ag_ui.core import RunAgentInput
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.server.uvicorn_protocols import HttpProtocol, SocketProtocol
from agui_container.settings import Settings
from agui_container.web.websocket_output import BURST
from tests.behaviour.server import listening
from tests.engine.doubles import ask, make_service
from tests.server.doubles import UPGRADE, RecordingTransport, connect, until
from tests.sse import http_client
from tests.websocket import receive_until, send, socket_to

pytestmark = pytest.mark.wire

TOKENS = 50


async def paced_agent(_: RunAgentInput) -> AsyncIterator[Item]:
    for number in range(TOKENS):
        yield f"{number} "
        await asyncio.sleep(0)
        await asyncio.sleep(0)


@asynccontextmanager
async def serving_tokens(*origins: str) -> AsyncIterator[str]:
    """A real server on a socket."""
    service = make_service(paced_agent)
    await service.open()
    async with listening(build_app(Settings(cors_origins=origins), service), lifespan="off") as url:
        yield url


async def respond(*origins: str) -> bytes:
    async with serving_tokens(*origins) as url, http_client(url) as client:
        response = await client.post("/invocations", json=ask())
    assert response.status_code == 200
    return response.content


@pytest.fixture(params=[HttpProtocol])
def written(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What connections of a class write directly."""
    written, write = list[bytes](), request.param.write_directly

    def record(connection: HttpProtocol, send: Send, data: bytes) -> bool:
        is_written: bool = write(connection, send, data)
        if is_written:
            written.append(data)
        return is_written

    monkeypatch.setattr(request.param, "write_directly", record)
    return written


def tokens_in(body: bytes) -> int:
    return body.count(b"TEXT_MESSAGE_CONTENT")


async def test_paced_tokens_are_written_directly_where_nothing_wraps_send(written: list[bytes]) -> None:
    body = await respond()
    assert tokens_in(body) == TOKENS
    assert tokens_in(b"".join(written)) > 0.9 * TOKENS
    assert len(written) > 0.9 * TOKENS


async def test_an_application_that_pages_may_call_gives_the_same_bytes_by_send(written: list[bytes]) -> None:
    body = await respond("http://page.example")
    assert (tokens_in(body), written) == (TOKENS, [])


@pytest.mark.parametrize("written", [SocketProtocol], indirect=True)
async def test_the_first_tokens_of_a_socket_are_written_directly(written: list[bytes]) -> None:
    async with serving_tokens() as url, socket_to(url) as socket:
        await send(socket, ask())
        frames = await receive_until(socket, lambda frame: frame["type"] == "RUN_FINISHED")
    text = "".join(frame["delta"] for frame in frames if frame["type"] == "TEXT_MESSAGE_CONTENT")
    assert text == "".join(f"{number} " for number in range(TOKENS))
    assert len(written) > BURST / 2


async def accept(scope: Scope, receive: Receive, send: Send) -> None:
    await WebSocket(scope, receive, send).accept()
    await asyncio.Event().wait()


async def test_a_socket_takes_frames_from_its_own_send_while_it_is_open_and_not_full() -> None:
    transport = RecordingTransport()
    connection = connect(SocketProtocol, accept, transport)
    own_send: Any = connection.send
    write = partial(connection.write_directly, own_send)
    assert not write(b"early")
    connection.data_received(UPGRADE + b"\r\n")
    await until(lambda: b"101" in transport.written)
    transport.written = b""
    assert write(b"a")
    connection.pause_writing()
    assert not write(b"full")
    connection.resume_writing()
    assert not connection.write_directly(AsyncMock(), b"of a middleware")
    assert write(b"b")
    connection.data_received(b"\x88\x80" + bytes(4))  # the client closes
    assert not write(b"late")
    assert transport.written.startswith(b"\x81\x01a\x81\x01b\x88")
    assert b"late" not in transport.written
    connection.connection_lost(None)
