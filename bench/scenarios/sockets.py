"""Memory of idle WebSockets."""

import asyncio

import uvloop

from bench.options import MeasureError, Options, Section
from bench.results import compare
from bench.server import AGENTCORE, TRANSPORT, RunningContestant
from bench.stream_client import many_files

WARM = 50
CONTESTANTS = (TRANSPORT, AGENTCORE)
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def measure(options: Options) -> Section:
    """KiB per socket, round by round."""
    many_files()
    found: dict[str, list[float]] = {contestant.name: [] for contestant in CONTESTANTS}
    for number in range(options.load_rounds):
        for contestant in reversed(CONTESTANTS) if number % 2 else CONTESTANTS:
            with RunningContestant(contestant) as server:
                found[server.name].append(uvloop.run(measure_socket_memory(server, options.sockets)))
    return Section(compare(f"{options.sockets} idle WebSockets: memory each", "KiB", found))


async def measure_socket_memory(server: RunningContestant, count: int) -> float:
    """Return the resident KiB per open socket."""
    writers = [await open_socket(server.port) for _ in range(WARM)]
    before = server.memory()
    writers += [await open_socket(server.port) for _ in range(count)]
    await asyncio.sleep(0.5)
    grown = server.memory() - before
    for writer in writers:
        writer.close()
    return grown / count / 1024


async def open_socket(port: int) -> asyncio.StreamWriter:
    """Open a WebSocket."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HANDSHAKE)
    answer = await reader.readuntil(b"\r\n\r\n")
    if b" 101 " not in answer:
        raise MeasureError(f"no socket: {answer.decode()}")
    return writer
