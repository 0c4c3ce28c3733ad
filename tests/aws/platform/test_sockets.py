"""Sockets: frames in both directions, their limits, and how both sides are closed."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from tests.aws.platform.conftest import AttachPlatform
from tests.aws.platform.doubles import (
    HEADER,
    SESSION,
    ScriptedContainer,
    ServedPlatform,
)
from tests.engine.doubles import eventually
from tests.websocket import socket_to

pytestmark = pytest.mark.wire

LIMIT = 65_536
EMPTY = '{"control": ""}'


def message(size: int) -> str:
    return json.dumps({"control": "x" * (size - len(EMPTY))})


def open_socket(site: ServedPlatform, **headers: str) -> connect:
    return socket_to(site.socket_url, "", additional_headers=headers)


async def closed(connection: ClientConnection) -> tuple[int, str]:
    """Read until the socket is closed; gives the code and the reason."""
    with contextlib.suppress(ConnectionClosed):
        async for _ in connection:
            pass
    assert connection.close_code is not None
    return connection.close_code, connection.close_reason or ""


async def echo(websocket: WebSocket) -> None:
    try:
        while True:
            received = await websocket.receive()
            if received["type"] == "websocket.disconnect":
                return
            if received.get("text") is not None:
                await websocket.send_text(received["text"])
            else:
                await websocket.send_bytes(received["bytes"])
    except WebSocketDisconnect:
        return


async def test_messages_pass_in_both_directions(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=echo))
    async with open_socket(site) as connection:
        assert connection.response is not None
        assert connection.response.headers[HEADER] == SESSION
        for sent in ('{"a": 1}', b"\x00\x01", message(LIMIT)):
            await connection.send(sent)
            assert await connection.recv() == sent


async def test_the_query_of_a_socket_carries_headers(attach: AttachPlatform) -> None:
    container = ScriptedContainer(talk=echo)
    name = "x-amzn-bedrock-agentcore-runtime-custom-tenant"
    site = await attach(container, allowed_headers=frozenset({name}))
    async with socket_to(site.socket_url, f"&{name}=acme&other=1", subprotocols=[Subprotocol("own")]) as connection:
        await connection.send(EMPTY)
        await connection.recv()
    [seen] = container.requests
    assert seen[name] == "acme"
    assert not {"other", "sec-websocket-protocol", "user-agent", "origin"} & {*seen}


async def test_a_frame_of_the_container_above_64_kb_closes_both_sides(attach: AttachPlatform) -> None:
    over: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def talk(websocket: WebSocket) -> None:
        await websocket.send_text(message(LIMIT + 1))
        over.set_result((await websocket.receive())["code"])

    site = await attach(ScriptedContainer(talk=talk))
    async with open_socket(site) as connection:
        assert (await closed(connection))[0] == 1009
    assert await over == 1009


async def test_a_frame_of_the_caller_above_64_kb_closes_both_sides(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=echo))
    async with open_socket(site) as connection:
        await connection.send(message(LIMIT + 1))
        with pytest.raises(ConnectionClosed) as raised:
            await connection.recv()
        assert raised.value.rcvd is not None
        assert raised.value.rcvd.code == 1009


def counting(frames: int) -> Callable[[WebSocket], Awaitable[None]]:
    async def talk(websocket: WebSocket) -> None:
        for number in range(frames):
            await websocket.send_text(json.dumps({"control": number}))
        await websocket.close()

    return talk


async def close_with_a_reason(websocket: WebSocket) -> None:
    await websocket.close(4001, "because")


@pytest.mark.parametrize(
    ("talk", "limits", "code", "reason"),
    [
        (counting(2000), {}, 1008, "more than 250 frames in a second"),
        (close_with_a_reason, {}, 4001, "because"),
        (echo, {"stream_seconds": 0.3}, 1008, "a stream has at most 0.3 s"),
    ],
    ids=["too many frames", "of the container", "60 minutes"],
)
async def test_a_socket_is_closed_with_a_code_and_a_reason(
    attach: AttachPlatform,
    talk: Callable[[WebSocket], Awaitable[None]],
    limits: dict[str, float],
    code: int,
    reason: str,
) -> None:
    site = await attach(ScriptedContainer(talk=talk), limits=limits)
    async with open_socket(site) as connection:
        assert await closed(connection) == (code, reason)


async def test_data_on_a_socket_keeps_the_session_and_an_open_socket_alone_does_not(attach: AttachPlatform) -> None:
    container = ScriptedContainer(talk=echo)
    site = await attach(container)
    async with open_socket(site) as connection:
        for _ in range(3):
            site.clock.seconds += 600
            await connection.send(EMPTY)
            await connection.recv()
        assert SESSION in site.plane.sessions.all()
        assert "freeze" not in site.containers[0].orders
        site.clock.seconds += 900
        await eventually(lambda: not site.plane.sessions.all())


async def test_a_container_without_a_socket_refuses_with_424(attach: AttachPlatform) -> None:
    site = await attach()
    with pytest.raises(InvalidStatus) as refused:
        async with open_socket(site):
            pass
    assert refused.value.response.status_code == 424
    assert b"AGENT_ERROR" in (refused.value.response.body or b"")
