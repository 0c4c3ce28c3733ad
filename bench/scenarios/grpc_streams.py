"""CPU time per message over gRPC, beside a bare grpcio server that sends ready messages, and of HTTP/1.1 beside it.

The goal is at most three times the CPU time of the bare server per message: a ratio of a third. HTTP/1.1 is measured
with gRPC on the same port and without.
"""

import socket
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import grpc

from agui_container.transports.gen.kontekst.kontekst_pb2 import RunCommand, StartRunCommand
from bench.options import MeasureError, Options, Section
from bench.results import Row, Samples, compare
from bench.scenarios import throughput
from bench.server import ASSISTANT, TRANSPORT, Contestant, RunningContestant, running

RUN = "/kontekst.AgentService/Run"
BARE = Contestant("bare grpcio", (sys.executable, "-m", "bench.peers.bare_grpc", "{port}"))
WITHOUT = replace(TRANSPORT, name="AGUI_GRPC=off", environment={**TRANSPORT.environment, "AGUI_GRPC": "off"})
GOAL = round(1 / 3, 2)
"""Ratio to the bare server that is wanted: at most three times its CPU time."""

MOST_OF_ONE = 20_000
"""Messages of one stream."""

CONNECTIONS = 500
DELTAS = 1_000
SECONDS = 300.0
MICRO = 1e6


def measure(options: Options) -> Section:
    """One stream, then many at the same time; then HTTP/1.1."""
    rows: list[Row] = []
    with running(ASSISTANT, BARE) as servers:
        for streams in (1, options.calls):
            size = min(options.messages // streams, MOST_OF_ONE)
            cpu = rounds(servers, options.load_rounds, partial(message_cost, streams, size))
            rows += compare(f"gRPC, {streams} at once: CPU per message", "µs", cpu, {BARE.name: GOAL})
    with running(TRANSPORT, WITHOUT) as servers:
        cpu = rounds(servers, options.rounds, connection_cost)
        rows += compare("HTTP/1.1 with gRPC on its port: CPU per connection", "µs", cpu)
        cpu = rounds(servers, options.rounds, lambda it: throughput.measure(it, "ready", DELTAS, options.seconds)[0])
        rows += compare("HTTP/1.1 with gRPC on its port: CPU per event", "µs", cpu)
    return Section(rows)


def rounds(servers: Sequence[RunningContestant], number: int, cost: Callable[[RunningContestant], float]) -> Samples:
    """The cost at every server, round by round, after one round that is not counted."""
    found: dict[str, list[float]] = {server.name: [] for server in servers}
    for at in range(number + 1):
        for server in reversed(servers) if at % 2 else servers:
            found[server.name].append(cost(server))
    return {name: costs[1:] for name, costs in found.items()}


def message_cost(streams: int, size: int, server: RunningContestant) -> float:
    """CPU microseconds of the server per message, with so many streams of ``size`` messages at once."""
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel, ThreadPoolExecutor(streams) as pool:
        before = server.cpu()
        count = sum(pool.map(lambda _: read(channel, server, size), range(streams)))
        return (server.cpu() - before) / count * MICRO


def read(channel: grpc.Channel, server: RunningContestant, size: int) -> int:
    """Read one stream; how many messages it had."""
    call = channel.stream_stream(RUN, RunCommand.SerializeToString, bytes)
    command = RunCommand(start=StartRunCommand(prompt=f"stream {size}"))
    count = sum(1 for _ in call(iter([command]), timeout=SECONDS))
    if count < size:
        raise MeasureError(f"{server.name} gave {count} messages of {size}:\n{server.read_output()}")
    return count


def connection_cost(server: RunningContestant) -> float:
    """CPU microseconds of the server per HTTP/1.1 connection with one request."""
    before = server.cpu()
    for _ in range(CONNECTIONS):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"GET /ping HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            while client.recv(65_536):
                pass
    return (server.cpu() - before) / CONNECTIONS * MICRO
