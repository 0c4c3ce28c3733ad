"""A server with few descriptors answers ``/ping`` beside any connections."""

import asyncio
import sys

import pytest

from agui_container.server.connections import MIN_RESERVED
from tests.requirements import requirement
from tests.sockets.client import HttpExchange, ask, get, post, request, run_input, text_of, wait_until
from tests.sockets.process import COMMAND, ServerProcess

DESCRIPTORS = 200
CLIENTS = 400
HALF = (DESCRIPTORS - MIN_RESERVED) // 2 - 2
"""Connections that the second address may open, besides those of a request and of a ping."""

LIMIT = f"resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))"
SCRIPT = f"import os, resource, sys; {LIMIT}; os.execv(sys.argv[1], sys.argv[1:])"
LIMITED = (sys.executable, "-c", SCRIPT, *COMMAND)


OTHER = "127.0.0.2"
IN_USE = request("POST", "/invocations", b"{", ("Content-Length: 2",))
"""A request that keeps its connection in use, because its body does not end."""

HALF_SENT = b"GET / HTTP/1.1\r\nHost: "


@requirement("caller.connections")
@pytest.mark.parametrize("sent", [IN_USE, HALF_SENT], ids=["in use", "half-sent"])
async def test_connections_of_one_address_leave_half_to_another(sent: bytes) -> None:
    with ServerProcess(LIMITED) as server:
        for _ in range(CLIENTS // 20):
            await asyncio.gather(*(HttpExchange.open(server.port, sent) for _ in range(20)))
        held = [await HttpExchange.open(server.port, IN_USE, source=OTHER) for _ in range(HALF)]
        answer = await ask(server.port, post(run_input("count 3 x")), source=OTHER)
        assert text_of(answer.events) == "x.0 x.1 x.2 "
        assert (await ask(server.port, request("GET", "/ping"), source=OTHER)).status == 200
        for exchange in held:
            exchange.writer.write(b"}")
        assert {(await exchange.head()).status for exchange in held} == {400}
        server.wait_for(lambda line: "too many connections" in line and "largest_caller=address:127.0.0.1" in line)


@requirement("caller.connections")
async def test_half_sent_requests_do_not_make_the_server_silent() -> None:
    with ServerProcess(LIMITED) as server:
        half = []
        for _ in range(CLIENTS // 20):
            half += await asyncio.gather(*(HttpExchange.open(server.port, HALF_SENT) for _ in range(20)))
        answer = await ask(server.port, request("GET", "/ping"))
        assert answer.status == 200
        server.wait_for(lambda line: "too many connections" in line)
        assert sum("too many connections" in line for line in server.log) < 5


@requirement("caller.connections")
async def test_connections_that_are_all_in_use_leave_room_for_ping() -> None:
    with ServerProcess(LIMITED) as server:
        for _ in range(CLIENTS // 20):
            await asyncio.gather(*(HttpExchange.open(server.port, IN_USE) for _ in range(20)))
        assert (await get(server.port, "/ping"))["status"] == "Healthy"

        async def refused() -> bool:
            return (await ask(server.port, request("GET", "/runs"))).status == 503

        await wait_until(refused)
