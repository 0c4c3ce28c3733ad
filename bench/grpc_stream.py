"""CPU per message over gRPC, beside a bare grpcio server that sends ready messages: ``python -m bench.grpc_stream``.

All servers are processes of their own and are measured in one run by their CPU time, with the same client. The goal is
at most three times the CPU of the bare server per message. HTTP/1.1 is measured with ``AGUI_GRPC=on`` and ``off``.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import grpc

from agui_container.transports.grpc.gen.kontekst.kontekst_pb2 import (
    RunCommand,
    RunEvent,
    StartRunCommand,
    TokenDeltaEvent,
)

ROOT = Path(__file__).parents[1]
RUN = "/kontekst.AgentService/Run"
TEXT = "hello world, "
MOST_OF_ONE = 20_000
"""Messages of one stream."""


async def bare(port: int) -> None:
    """Serve ``prompt`` messages that are ready, with grpcio's asyncio server and nothing else."""

    async def run(commands: AsyncIterator[RunCommand], _: object) -> AsyncIterator[bytes]:
        ready = RunEvent(token=TokenDeltaEvent(text=TEXT)).SerializeToString()
        async for command in commands:
            for _ in range(int(command.start.prompt)):
                yield ready
            return

    handler = grpc.stream_stream_rpc_method_handler(run, RunCommand.FromString, bytes)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("kontekst.AgentService", {"Run": handler}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print("ready", flush=True)  # noqa: T201 - the parent waits for it
    await server.wait_for_termination()


def cpu(process: subprocess.Popen[str]) -> float:
    """CPU seconds of a process's threads so far, to the nanosecond."""
    threads = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def read(channel: grpc.Channel, prompt: str) -> int:
    """Read one stream; how many messages it had."""
    call = channel.stream_stream(RUN, RunCommand.SerializeToString, bytes)
    return sum(1 for _ in call(iter([RunCommand(start=StartRunCommand(prompt=prompt))]), timeout=300))


def measured(process: subprocess.Popen[str], port: int, prompt: str, streams: int) -> tuple[float, float]:
    """CPU microseconds per message, and messages per second."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, ThreadPoolExecutor(streams) as pool:
        read(channel, prompt)
        before, begun = cpu(process), time.perf_counter()
        count = sum(pool.map(lambda _: read(channel, prompt), range(streams)))
        seconds = time.perf_counter() - begun
        return (cpu(process) - before) / count * 1e6, count / seconds


def connected(process: subprocess.Popen[str], port: int, connections: int) -> float:
    """CPU microseconds per HTTP/1.1 connection with one request."""
    before = cpu(process)
    for _ in range(connections):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /ping HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            while client.recv(65_536):
                pass
    return (cpu(process) - before) / connections * 1e6


def streamed(process: subprocess.Popen[str], port: int, messages: int) -> float:
    """CPU microseconds per text delta over SSE."""
    before = cpu(process)
    for number in range(5):
        run = {"threadId": f"{number}", "messages": [{"id": "m", "role": "user", "content": f"stream {messages}"}]}
        body = json.dumps({**run, "runId": f"{time.time_ns()}"}).encode()
        with urlopen(f"http://127.0.0.1:{port}/invocations", body, timeout=300) as answer:
            answer.read()
    return (cpu(process) - before) / (5 * messages) * 1e6


@contextmanager
def process(*command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A server that has told that it is ready."""
    environment = {**os.environ, "AGUI_HOST": "127.0.0.1", **variables}
    running = subprocess.Popen(  # noqa: S603 - our own programs
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert running.stdout  # noqa: S101 - it is piped
        running.stdout.readline()
        threading.Thread(target=running.stdout.read, daemon=True).start()  # or a full pipe would stop it
        yield running
    finally:
        running.terminate()
        running.wait(30)


def compare_grpc(port: int, messages: int, streams: Sequence[int]) -> None:
    """Print a table of this server and of the bare one."""
    print("| streams | server | CPU µs per message | messages/s |\n|---|---|---|---|")  # noqa: T201 - the result
    with (
        process("agui_container", "serve", AGUI_PORT=str(port)) as ours,
        process("bench.grpc_stream", "--bare", str(port + 1)) as other,
    ):
        for number in streams:
            count = min(messages // number, MOST_OF_ONE)
            for name, each, at, prompt in (
                ("agui-container", ours, port, f"stream {count}"),
                ("bare grpcio", other, port + 1, f"{count}"),
            ):
                spent, rate = measured(each, at, prompt, number)
                print(f"| {number} | {name} | {spent:.1f} | {rate:.0f} |")  # noqa: T201 - the result


def compare_http(port: int, messages: int = 2_000, rounds: int = 6) -> None:
    """Print a table of HTTP/1.1 with gRPC and without, in turns; the medians."""
    print("\n| AGUI_GRPC | CPU µs per connection | CPU µs per SSE delta |\n|---|---|---|")  # noqa: T201 - the result
    serve = ("agui_container", "serve")
    with (
        process(*serve, AGUI_PORT=str(port), AGUI_GRPC="on") as on,
        process(*serve, AGUI_PORT=str(port + 1), AGUI_GRPC="off") as off,
    ):
        servers = {"on": (on, port), "off": (off, port + 1)}
        rows: dict[str, list[tuple[float, float]]] = {"on": [], "off": []}
        for _ in range(rounds):
            for name, (each, at) in servers.items():
                rows[name].append((connected(each, at, 500), streamed(each, at, messages)))
        for name, found in rows.items():
            connection, delta = (median(values) for values in zip(*found[1:], strict=True))
            print(f"| {name} | {connection:.0f} | {delta:.2f} |")  # noqa: T201 - the result


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description="CPU per message over gRPC")
    parser.add_argument("--bare", type=int, help="serve ready messages on this port, as the process that is measured")
    parser.add_argument("--messages", type=int, default=100_000, help="of all streams together")
    parser.add_argument("--streams", type=int, nargs="*", default=[1, 200])
    parser.add_argument("--port", type=int, default=18_080)
    arguments = parser.parse_args()
    if arguments.bare:
        asyncio.run(bare(arguments.bare))
        return
    compare_grpc(arguments.port, arguments.messages, arguments.streams)
    compare_http(arguments.port + 2)


if __name__ == "__main__":
    main()
