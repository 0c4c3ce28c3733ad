"""Sockets: frames in both directions, their limits, and how both sides are closed."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from agui_container.platform.rules import RuleState
from agui_container.platform.session import SessionState
from tests.engine.doubles import eventually, wait_for_event
from tests.platform.conftest import AttachPlatform
from tests.platform.doubles import (
    CUSTOM,
    FINISHED,
    HEADER,
    INPUT,
    RUNTIME,
    SESSION,
    STARTED,
    ScriptedContainer,
    ServedPlatform,
)
from tests.websocket import socket_to

LIMIT = 65_536
EMPTY = '{"control": ""}'
EVENTS = [each.removeprefix(b"data: ").decode() for each in (STARTED.strip(), CUSTOM.strip(), FINISHED.strip())]
OTHER_INPUT, *OTHER_EVENTS = (each.replace("r1", "r2") for each in (INPUT.decode(), *EVENTS))
ATTACH = '{"command": {"type": "attach"}}'


def message(size: int) -> str:
    """A message of exactly that many bytes, as JSON."""
    return json.dumps({"control": "x" * (size - len(EMPTY))})


def open_socket(site: ServedPlatform, **headers: str) -> connect:
    """Open the runtime's socket."""
    return socket_to(site.socket_url, "", additional_headers=headers)


async def closed(connection: ClientConnection) -> tuple[int, str]:
    """Read until the socket is closed; gives the code and the reason."""
    with contextlib.suppress(ConnectionClosed):
        async for _ in connection:
            pass
    assert connection.close_code is not None
    return connection.close_code, connection.close_reason or ""


async def echo(websocket: WebSocket) -> None:
    """Send every message back."""
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
    assert "socket.frame-size" in site.plane.findings.broken()


async def test_a_frame_of_the_caller_above_64_kb_closes_both_sides(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=echo))
    async with open_socket(site) as connection:
        await connection.send(message(LIMIT + 1))
        with pytest.raises(ConnectionClosed) as raised:
            await connection.recv()
        assert raised.value.rcvd is not None
        assert raised.value.rcvd.code == 1009
    assert not site.plane.findings.broken()


async def test_a_large_message_may_come_in_fragments(attach: AttachPlatform) -> None:
    whole = message(3 * LIMIT)

    async def talk(connection: ServerConnection) -> None:
        await connection.send(whole[at : at + LIMIT] for at in range(0, len(whole), LIMIT))
        await connection.wait_closed()

    site = await attach()
    await site.invoke()
    async with serve(talk, "127.0.0.1", 0) as server:
        site.session.container.port = server.sockets[0].getsockname()[1]
        async with open_socket(site) as connection:
            assert await connection.recv() == whole
    assert not site.plane.findings.broken()


def counting(frames: int) -> Callable[[WebSocket], Awaitable[None]]:
    """A container that sends that many frames at once."""

    async def talk(websocket: WebSocket) -> None:
        for number in range(frames):
            await websocket.send_text(json.dumps({"control": number}))
        await websocket.close()

    return talk


async def test_more_than_250_frames_in_a_second_close_both_sides(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=counting(2000)))
    async with open_socket(site) as connection:
        code, reason = await closed(connection)
    assert (code, "250 frames" in reason) == (1008, True)
    assert "socket.frame-rate" in site.plane.findings.broken()


async def test_250_frames_are_no_more_than_250(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=counting(250)))
    async with open_socket(site) as connection:
        assert (await closed(connection))[0] == 1000
    assert not site.plane.findings.broken()


async def test_a_caller_who_sends_too_many_frames_is_cut_off(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=echo), limits={"frames_per_second": 10})
    async with open_socket(site) as connection:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(100):
                await connection.send(EMPTY)
        assert (await closed(connection))[0] == 1008
    assert not site.plane.findings.broken(), "the container is not to blame"


async def test_the_containers_close_code_reaches_the_caller(attach: AttachPlatform) -> None:
    async def talk(websocket: WebSocket) -> None:
        await websocket.close(4001, "because")

    site = await attach(ScriptedContainer(talk=talk))
    async with open_socket(site) as connection:
        assert await closed(connection) == (4001, "because")


async def test_the_callers_close_reaches_the_container(attach: AttachPlatform) -> None:
    over = asyncio.Event()

    async def talk(websocket: WebSocket) -> None:
        await websocket.receive()
        over.set()

    site = await attach(ScriptedContainer(talk=talk))
    async with open_socket(site):
        pass
    await wait_for_event(over)


async def test_a_socket_ends_after_60_minutes(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=echo), limits={"stream_seconds": 30.0})
    async with open_socket(site) as connection:
        assert (await closed(connection))[0] == 1008


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


@pytest.mark.parametrize(
    ("inputs", "answered", "broken"),
    [
        ([INPUT.decode(), OTHER_INPUT], [*EVENTS, *OTHER_EVENTS], set()),
        ([INPUT.decode(), ATTACH], [*EVENTS, *EVENTS[1:]], set()),
        ([INPUT.decode(), OTHER_INPUT], [*EVENTS[:2], *OTHER_EVENTS], {"run.end"}),
        ([INPUT.decode()], EVENTS[:2], {"run.end"}),
        ([INPUT.decode()], OTHER_EVENTS, {"run.start"}),
        ([INPUT.decode()], EVENTS[1:], {"run.start", "run.order"}),
        ([INPUT.decode()], [*EVENTS, EVENTS[1]], {"run.order", "run.end"}),
        ([INPUT.decode()], [], {"run.end"}),
        ([INPUT.decode()], ['{"control": "error"}'], set()),
        ([ATTACH], [], set()),
        ([], [], set()),
    ],
)
async def test_the_runs_of_a_socket_are_judged_one_after_the_other(
    attach: AttachPlatform, inputs: list[str], answered: list[str], broken: set[str]
) -> None:
    async def talk(websocket: WebSocket) -> None:
        for _ in inputs:
            await websocket.receive()
        for event in answered:
            await websocket.send_text(event)
        await websocket.close()

    site = await attach(ScriptedContainer(talk=talk))
    async with open_socket(site) as connection:
        for content in inputs:
            await connection.send(content)
        assert (await closed(connection))[0] == 1000
    assert {*site.plane.findings.broken()} == broken


async def test_a_container_that_goes_away_may_leave_an_input_unanswered(attach: AttachPlatform) -> None:
    async def talk(websocket: WebSocket) -> None:
        await websocket.receive()
        await websocket.close(CloseCode.SERVICE_RESTART)

    site = await attach(ScriptedContainer(talk=talk))
    async with open_socket(site) as connection:
        await connection.send(INPUT.decode())
        assert (await closed(connection))[0] == CloseCode.SERVICE_RESTART
    assert not site.plane.findings.broken()


@pytest.mark.parametrize(("status", "state"), [("Healthy", RuleState.BROKEN), ("HealthyBusy", RuleState.HELD)])
async def test_a_container_must_be_busy_during_the_run_of_a_socket(
    attach: AttachPlatform, status: str, state: RuleState
) -> None:
    continues = asyncio.Event()

    async def talk(websocket: WebSocket) -> None:
        await websocket.receive()
        await websocket.send_text(EVENTS[0])
        await continues.wait()
        for event in EVENTS[1:]:
            await websocket.send_text(event)
        await eventually(lambda: site.plane.findings["ping.busy"].state is state)
        await websocket.close()

    container = ScriptedContainer(talk=talk)
    site = await attach(container)
    async with open_socket(site) as connection:
        await connection.send(INPUT.decode())
        assert await connection.recv() == EVENTS[0]
        container.ping = {"status": status, "time_of_last_update": 1_700_000_000}
        before = container.pings
        await eventually(lambda: container.pings >= before + 4)
        continues.set()
        assert (await closed(connection))[0] == 1000
    assert site.plane.findings["ping.during-run"].state is RuleState.HELD


async def test_a_container_without_a_socket_refuses_with_424(attach: AttachPlatform) -> None:
    site = await attach()
    with pytest.raises(InvalidStatus) as refused:
        async with open_socket(site):
            pass
    assert refused.value.response.status_code == 424
    assert b"AGENT_ERROR" in (refused.value.response.body or b"")
    assert "SSE or WebSocket" in site.plane.findings["socket.upgrade"].detail


async def test_a_session_id_that_is_too_short_refuses_the_socket(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=echo))
    with pytest.raises(InvalidStatus) as refused:
        await socket_to(site.url, f"{RUNTIME}/ws?{HEADER}=short")
    assert refused.value.response.status_code == 400


async def test_a_socket_to_a_container_that_cannot_be_thawed_is_an_internal_error(attach: AttachPlatform) -> None:
    site = await attach(ScriptedContainer(talk=echo))
    await site.invoke()
    await eventually(lambda: site.session.state is SessionState.FROZEN)
    site.containers[0].can_thaw = False
    with pytest.raises(InvalidStatus) as refused:
        await open_socket(site)
    assert refused.value.response.status_code == 500
    assert b"INTERNAL_ERROR" in (refused.value.response.body or b"")
