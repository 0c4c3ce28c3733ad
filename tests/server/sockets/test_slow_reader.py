"""Readers that do not read, or have said that they will send no more: they cost little and harm nobody."""

import asyncio
import json
import socket

import pytest

from tests.server.sockets.agents import PIECE, piece
from tests.server.sockets.client import (
    HttpExchange,
    ask,
    get,
    is_last,
    post,
    request,
    run_input,
    say,
    text_of,
    wait_until,
)
from tests.server.sockets.process import Servers
from tests.websocket import receive_until, socket_to

pytestmark = pytest.mark.wire

PIECES = 8_000
WINDOW = 65536
SLOW_READERS = 8


async def test_readers_that_do_not_read_cost_little_and_get_everything_in_the_end(servers: Servers) -> None:
    """8 MB of text and nine readers: nine copies would be 72 MB more than the run's own log."""
    server = servers()
    port = server.port
    await say(port, "count 10 warm")
    before = server.memory
    document = run_input(f"bulk {PIECES}")
    slow = [await (await HttpExchange.open(port, post(document), window=WINDOW)).head()]
    again = request("GET", f"/runs/{document['runId']}/events")
    slow += [await (await HttpExchange.open(port, again, window=WINDOW)).head() for _ in range(SLOW_READERS - 1)]
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW)
    async with socket_to(port, sock=sock, max_queue=1, compression=None) as slow_socket:
        await slow_socket.send(json.dumps(document))

        others = await asyncio.gather(*(ask(port, post(run_input(f"count 100 other{n}"))) for n in range(10)))
        for number, other in enumerate(others):
            assert text_of(other.events) == "".join(f"other{number}.{n} " for n in range(100))

        async def produced() -> bool:
            return bool((await get(port, f"/runs/{document['runId']}"))["status"] == "finished")

        await wait_until(produced)
        assert (await get(port, f"/runs/{document['runId']}"))["readers"] == SLOW_READERS + 1
        assert server.memory - before < 5 * PIECES * PIECE

        whole = "".join(map(piece, range(PIECES)))
        frames = await receive_until(slow_socket, is_last)
    assert text_of(frames) == whole
    for exchange in slow:
        await exchange.rest()
        await exchange.close()
        assert exchange.text == whole
        assert exchange.events[-1]["type"] == "RUN_FINISHED"
        exchange.events.clear()
