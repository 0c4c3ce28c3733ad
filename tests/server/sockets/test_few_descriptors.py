"""A server with few file descriptors, while clients use them up: open runs and new connections."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tests.protocols.grpc.client import client_of
from tests.server.sockets.client import (
    HttpExchange,
    ask,
    is_last,
    is_text,
    post,
    request,
    run_input,
    say,
    wait_until,
)
from tests.server.sockets.process import COMMAND, ServerProcess
from tests.websocket import receive_until, send, socket_to

pytestmark = pytest.mark.wire

DESCRIPTORS = 200
CLIENTS = 400
LIMIT = f"resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))"
SCRIPT = f"import os, resource, sys; {LIMIT}; os.execv(sys.argv[1], sys.argv[1:])"
LIMITED = (sys.executable, "-c", SCRIPT, *COMMAND)


IN_USE = request("POST", "/invocations", b"{", ("Content-Length: 2",))
"""A request that keeps its connection in use, because its body does not end."""


@asynccontextmanager
async def clients_that_use_all(server: ServerProcess) -> AsyncIterator[None]:
    """Keep all connections in use. A request on a new one is refused."""
    clients = []
    for _ in range(CLIENTS // 20):
        clients += await asyncio.gather(*(HttpExchange.open(server.port, IN_USE) for _ in range(20)))

    async def refused() -> bool:
        try:
            return (await ask(server.port, request("GET", "/runs"))).status == 503
        except ConnectionResetError:  # closed before the server had read the request
            return False

    await wait_until(refused)
    yield
    for client in clients:
        await client.close()


async def test_open_runs_of_every_protocol_continue_while_no_descriptor_is_left() -> None:
    async with AsyncExitStack() as closing:
        server = closing.enter_context(ServerProcess(LIMITED))
        control, socket = [await closing.enter_async_context(socket_to(server.port)) for _ in range(2)]
        sse = await (await HttpExchange.open(server.port, post(run_input("churn")))).until(is_text)
        await send(socket, run_input("churn"))
        await receive_until(socket, is_text)
        session = await (await closing.enter_async_context(client_of(server.port))).start_session()
        await session.say("churn")
        await session.until("text_delta")
        async with clients_that_use_all(server):
            await send(control, run_input("release churn"))
            assert (await receive_until(socket, is_last))[-1]["type"] == "RUN_FINISHED"
            assert (await sse.rest()).events[-1]["type"] == "RUN_FINISHED"
            assert await session.answer()

        async def is_served_again() -> bool:
            return await say(server.port, "release nothing") == "released"

        await wait_until(is_served_again)
        another = await closing.enter_async_context(client_of(server.port))
        assert await (await another.start_session()).ask("hello")
        assert server.faults == []
