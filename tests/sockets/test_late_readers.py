"""Readers that are behind when the server stops: each gets the rest of its run and the end of its stream."""

import asyncio
import json
import socket
from functools import partial

import grpc
import h2.events
from hyperframe.frame import PingFrame
from websockets.frames import Frame, Opcode

from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from tests.grpc.h2 import Raw, message
from tests.grpc.in_loop_clients import RUN
from tests.grpc.kontekst_calls import start_run
from tests.server.doubles import UPGRADE as HANDSHAKE
from tests.sockets.client import HttpExchange, get, post, run_input, wait_until
from tests.sockets.process import ServerProcess
from tests.websocket import socket_to

LATE_SECONDS = 1.5
"""Seconds from the signal until the clients read: more than the server once waited, less than it waits now."""

PIECES = 4_000
WINDOW = 65_536

HEADERS, PING, GO_AWAY = 1, 6, 7
ACK = END_STREAM = 1
END_HEADERS = 4


async def is_finished(port: int, run_id: str) -> bool:
    """Return True if a run has ended."""
    return bool((await get(port, f"/runs/{run_id}"))["status"] == "finished")


async def test_readers_that_are_behind_get_the_end_of_their_streams_from_a_server_that_stops() -> None:
    """Over SSE, a WebSocket and gRPC. Four megabytes for each do not fit into the buffers of a kernel."""
    with ServerProcess() as server, grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        over_sse, over_socket = run_input(f"bulk {PIECES}"), run_input(f"bulk {PIECES}")
        exchange = await (await HttpExchange.open(server.port, post(over_sse), window=WINDOW)).head()
        sock = socket.create_connection(("127.0.0.1", server.port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW)
        async with socket_to(server.port, sock=sock, max_queue=1, compression=None) as connection:
            with start_run(channel, f"bulk {PIECES}") as call:
                await asyncio.to_thread(call.until, "token")
                await connection.send(json.dumps(over_socket))
                for document in (over_sse, over_socket):
                    await wait_until(partial(is_finished, server.port, document["runId"]))
                server.term()
                server.wait_for(lambda line: "shutting down" in line)
                await asyncio.sleep(LATE_SECONDS)
                reading = asyncio.create_task(asyncio.to_thread(list, call.rest()))
                body = await exchange.reader.read()
                while '"RUN_FINISHED"' not in str(await connection.recv()):
                    pass
                await connection.wait_closed()
                assert (await reading)[-1] == "completed"
        await exchange.close()
        assert b"RUN_FINISHED" in body
        assert body.endswith(b"\r\n0\r\n\r\n")
        assert connection.close_code == 1012
        assert await asyncio.to_thread(server.wait) == 0
        assert server.faults == []


def next_frame(source: socket.socket) -> tuple[int, int, int]:
    """Type, flags and stream of the next HTTP/2 frame. h2 takes none after GOAWAY. Raises ``EOFError`` at the end."""
    head = read_exactly(source, 9)
    read_exactly(source, int.from_bytes(head[:3]))
    return head[3], head[4], int.from_bytes(head[5:])


def read_exactly(source: socket.socket, size: int) -> bytes:
    """Return as many bytes. Raises ``EOFError`` if the connection ends before."""
    data = b""
    while len(data) < size:
        piece = source.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def test_a_connection_stays_open_for_a_grpc_client_that_has_not_ended_its_call_yet() -> None:
    """The client grpcio reports "Socket closed" for a call with a status if it has not ended its own side yet."""
    with ServerProcess() as server, Raw(server.port) as client:
        call = client.call(RUN)
        start = kontekst.StartRunCommand(prompt="hold")
        client.data(call, message(kontekst.RunCommand(start=start).SerializeToString()))
        client.until(h2.events.DataReceived)
        server.term()
        seen = [next_frame(client.socket)]
        while not {(HEADERS, END_HEADERS | END_STREAM, call), (GO_AWAY, 0, 0)} <= set(seen):
            seen.append(next_frame(client.socket))
        client.send(PingFrame(opaque_data=bytes(8)).serialize())
        while seen[-1] != (PING, ACK, 0):
            seen.append(next_frame(client.socket))
        client.socket.close()
        assert server.wait() == 0
        assert server.faults == []


async def test_a_socket_stays_open_for_the_answer_to_its_close_frame() -> None:
    with ServerProcess() as server:
        exchange = await HttpExchange.open(server.port, HANDSHAKE + b"\r\n")
        assert (await exchange.head()).status == 101
        server.term()
        assert await exchange.reader.readexactly(4) == Frame(Opcode.CLOSE, (1012).to_bytes(2)).serialize(mask=False)
        exchange.writer.write(Frame(Opcode.PING, b"open?").serialize(mask=True))
        assert await exchange.reader.readexactly(7) == Frame(Opcode.PONG, b"open?").serialize(mask=False)
        exchange.writer.write(Frame(Opcode.CLOSE, (1012).to_bytes(2)).serialize(mask=True))
        assert await exchange.reader.read() == b""  # and no reset
        await exchange.close()
        assert await asyncio.to_thread(server.wait) == 0
