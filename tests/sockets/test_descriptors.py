"""A server with few descriptors answers ``/ping`` beside any connections."""

import asyncio
import sys

from tests.requirements import requirement
from tests.sockets.client import HttpExchange, ask, get, request, wait_until
from tests.sockets.process import COMMAND, ServerProcess

DESCRIPTORS = 200
CLIENTS = 400
LIMIT = f"resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))"
SCRIPT = f"import os, resource, sys; {LIMIT}; os.execv(sys.argv[1], sys.argv[1:])"
LIMITED = (sys.executable, "-c", SCRIPT, *COMMAND)


IN_USE = request("POST", "/invocations", b"{", ("Content-Length: 2",))
"""A request that keeps its connection in use, because its body does not end."""

HALF_SENT = b"GET / HTTP/1.1\r\nHost: "


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
