"""Limits of open gRPC connections."""

import asyncio
import contextlib

from agui_container.server.connections import MIN_RESERVED, ConnectionLimit
from tests.engine.doubles import WAIT
from tests.grpc.h2 import Raw
from tests.grpc.in_loop_clients import begin_run, beside, port_of, raw
from tests.requirements import requirement
from tests.sse import http_client
from tests.waiting_agent import WaitingAgent


def is_cut(client: Raw) -> bool:
    """Read to the end of a connection. False if it says goodbye."""
    with contextlib.suppress(ConnectionError):
        while client.read():
            pass
    return not client.is_open


@requirement("grpc.floods")
async def test_a_grpc_connection_without_calls_gives_way_as_other_idle_connections_do() -> None:
    agent = WaitingAgent()
    limit = ConnectionLimit(MIN_RESERVED + 2)
    async with port_of(agent, limit=limit) as port, raw(port) as busy, raw(port) as idle:
        stream = await begin_run(busy)
        async with http_client(f"http://127.0.0.1:{port}") as http:
            assert (await http.get("/runs")).status_code == 200
        assert await beside(is_cut, idle)
        agent.may_end.set()
        assert (await beside(busy.status, stream))[0] == "0"


@requirement("grpc.floods")
async def test_connections_that_have_ended_leave_room() -> None:
    limit = ConnectionLimit(MIN_RESERVED + 2)
    async with port_of(WaitingAgent(), limit=limit) as port, asyncio.timeout(WAIT):
        served = 0
        while served < 3:
            with contextlib.suppress(ConnectionError):  # the server has not noticed the end of the one before
                async with raw(port) as client:
                    await begin_run(client, f"thread {served}")
                    served += 1
