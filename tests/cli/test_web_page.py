"""The way of ``agui chat --web`` to its agent: close codes of sockets."""

from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from agui_container.cli.target import Target
from agui_container.cli.web_page import build_page
from tests.behaviour.server import listening
from tests.websocket import socket_to

pytestmark = [pytest.mark.wire, pytest.mark.processes]

Talk = Callable[[ServerConnection], Awaitable[None]]


async def close_without_a_code(connection: ServerConnection) -> None:
    await connection.recv()
    connection.protocol.send_close()
    connection.transport.write(b"".join(connection.protocol.data_to_send()))
    await connection.wait_closed()


async def break_off(connection: ServerConnection) -> None:
    await connection.recv()
    connection.transport.abort()


async def refuse(connection: ServerConnection) -> None:
    await connection.recv()
    await connection.close(4001, "because")


@pytest.mark.parametrize(
    ("talk", "code"), [(close_without_a_code, 1011), (break_off, 1013), (refuse, 4001)], ids=["1005", "1006", "4001"]
)
async def test_the_page_gets_a_close_code_however_its_agent_goes_away(talk: Talk, code: int) -> None:
    async with serve(talk, "127.0.0.1", 0) as agent:
        port = agent.sockets[0].getsockname()[1]
        async with (
            listening(build_page(Target("agent", f"http://127.0.0.1:{port}/invocations", {}))) as page,
            socket_to(page) as connection,
        ):
            await connection.send("{}")
            with pytest.raises(ConnectionClosed) as closed:
                await connection.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == code


async def test_the_page_gets_a_close_code_if_its_agent_is_not_there() -> None:
    async with (
        listening(build_page(Target("agent", "http://127.0.0.1:9/invocations", {}))) as page,
        socket_to(page) as connection,
    ):
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013
