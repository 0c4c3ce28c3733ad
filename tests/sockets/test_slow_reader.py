"""Readers that do not read, or have said that they will send no more: they cost little and harm nobody."""

import asyncio
import json
import socket

import pytest

from tests.sockets.agents import PIECE, piece
from tests.sockets.client import (
    PATIENCE,
    HttpExchange,
    ask,
    get,
    is_last,
    is_text,
    post,
    request,
    run_input,
    say,
    text_of,
    wait_until,
)
from tests.sockets.process import Servers
from tests.websocket import receive_until, socket_to

PIECES = 20_000
WINDOW = 65536
SLOW_READERS = 8
MEGABYTE = 1_000_000


async def test_readers_that_do_not_read_cost_little_and_get_everything_in_the_end(servers: Servers) -> None:
    """20 MB of text and nine readers: nine copies would be 180 MB more than the run's own log."""
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


async def test_a_reader_that_never_reads_can_leave(servers: Servers) -> None:
    port = servers(AGUI_ON_DISCONNECT="cancel").port
    document = run_input(f"bulk {PIECES // 10}")
    exchange = await (await HttpExchange.open(port, post(document), window=WINDOW)).head()
    await exchange.close(reset=True)

    async def unread() -> bool:
        return bool((await get(port, f"/runs/{document['runId']}"))["readers"] == 0)

    await wait_until(unread)


async def test_a_client_that_shuts_down_its_sending_side_is_served_or_gone_and_harms_nothing(servers: Servers) -> None:
    """ASGI servers cannot tell this from a client that left, so the run follows ``AGUI_ON_DISCONNECT``."""
    port = servers(AGUI_ON_DISCONNECT="grace:30").port
    bystander = await (await HttpExchange.open(port, post(other := run_input("hold")))).until(is_text)
    document = run_input("hold")
    half = await (await HttpExchange.open(port, post(document))).until(is_text)
    half.writer.write_eof()

    async def unread() -> bool:
        return bool((await get(port, f"/runs/{document['runId']}"))["readers"] == 0)

    await wait_until(unread)
    await say(port, f"release {document['runId']}")
    assert text_of((await ask(port, post(document))).events) == "before after"
    await half.close()

    await say(port, f"release {other['runId']}")
    assert (await bystander.rest()).text == "before after"
    await bystander.close()


@pytest.mark.parametrize("sent", [request("GET", "/ping"), post(run_input("count 3 x"))], ids=["GET", "POST"])
async def test_a_client_that_sends_no_more_behind_a_complete_request_gets_its_answer(
    servers: Servers, sent: bytes
) -> None:
    sock = socket.socket()
    sock.setblocking(False)  # noqa: FBT003 - the standard library's own
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", servers().port))
    await asyncio.get_running_loop().sock_sendall(sock, sent)
    sock.shutdown(socket.SHUT_WR)
    reader, writer = await asyncio.open_connection(sock=sock)
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    writer.close()


async def test_a_half_closed_socket_harms_nothing(servers: Servers) -> None:
    port = servers(AGUI_ON_DISCONNECT="grace:30").port
    document = run_input("hold")
    connection = await socket_to(port)
    await connection.send(json.dumps(document))
    await receive_until(connection, is_text)
    connection.transport.write_eof()
    await connection.wait_closed()
    await say(port, f"release {document['runId']}")
    assert text_of((await ask(port, post(document))).events) == "before after"
