"""Growth of cost with the amount of sent or stored data: each at three sizes, as cost per unit.

Rule: a figure per unit that stays the same from row to row is linear growth; the last column is the largest size's
figure by the smallest's, and should be near 1 or below it. Only our own server is measured here.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import uvloop

from bench.client import BlockingConnection, get, post, run_body
from bench.options import Extra, MeasureError, Options, Section
from bench.server import TRANSPORT, RunningContestant, running
from bench.stream_client import StreamGroup

MICRO = 1e6
REPEATS = 7
WARM = 3
SETTLING = 0.004
CHANGES = 2_000
SHORT = 20
"""Short runs that are measured together."""

Line = tuple[str, ...]


def measure(options: Options) -> Section:
    """Every kind of growth; kept runs on servers that have no others."""
    lines: list[Line] = []
    with RunningContestant(TRANSPORT) as server, BlockingConnection(server.port) as connection:
        for _ in range(WARM):
            connection.run("deltas 1000")
        lines += history(server, connection, options)
        lines += state(server, connection)
        lines += uvloop.run(readers(server, options))
        lines += long_run(server, connection, options)  # its agent keeps its events, which Python looks through
    lines += measure_ended_runs(options)
    head = ("what grows", "unit", "cost per unit, by size", "largest by smallest")
    return Section(extras=[Extra("Growth", head, lines)])


def line(what: str, unit: str, costs: Sequence[tuple[int, float]]) -> Line:
    """One row of costs per unit, in microseconds."""
    cells = ", ".join(f"{size:,}: {cost:.2f} µs" for size, cost in costs)
    return (what, unit, cells, f"{costs[-1][1] / costs[0][1]:.2f}")


def spent(server: RunningContestant, work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Microseconds of the server's CPU, the median of repeats. The clock of a process is exact while it sleeps."""
    costs = []
    for _ in range(repeats):
        before = server.cpu()
        work()
        time.sleep(SETTLING)
        costs.append((server.cpu() - before) * MICRO)
    return statistics.median(costs)


def scale_sizes(options: Options, *sizes: int) -> list[int]:
    """Scale sizes, for a quick run."""
    return [max(1, int(size * options.growth)) for size in sizes]


def history(server: RunningContestant, connection: BlockingConnection, options: Options) -> list[Line]:
    """Threads with more and more messages; a run without any is subtracted."""
    empty = spent(server, partial(connection.run, "deltas 10"), 4 * REPEATS)
    costs = []
    for size in scale_sizes(options, 200, 600, 2_000):
        cost = spent(server, partial(connection.run, "deltas 10", size)) - empty
        costs.append((size, cost / size))
    return [line("messages of the thread", "message sent", costs)]


def long_run(server: RunningContestant, connection: BlockingConnection, options: Options) -> list[Line]:
    """Runs of more and more events: written and read live, then read again from the start."""
    live, again = [], []
    for size in scale_sizes(options, 1_000, 10_000, 100_000):
        connection.run(f"ready {size}")  # makes them
        body = run_body(f"ready {size}", thread=f"long{size}")
        live.append((size, spent(server, partial(connection.ask, post(body)), 1) / size))
        request = get(f"/runs/{json.loads(body)['runId']}/events?threadId=long{size}")
        again.append((size, spent(server, partial(connection.ask, request)) / size))
    return [line("events of a run, live", "event", live), line("events of a run, attached after", "event", again)]


def state(server: RunningContestant, connection: BlockingConnection) -> list[Line]:
    """Small deltas on a larger and larger state; a run with the state and one delta, just before, is subtracted."""

    def more(size: int) -> float:
        bare, full = (spent(server, partial(connection.run, f"state {size} {count}"), 1) for count in (1, CHANGES + 1))
        return (full - bare) / CHANGES

    costs = [(size, statistics.median(more(size) for _ in range(REPEATS))) for size in (10_000, 100_000, 1_000_000)]
    return [line("bytes of the state", "delta of one operation", costs)]


async def readers(server: RunningContestant, options: Options) -> list[Line]:
    """More and more readers of one run, all there from its start."""
    size = scale_sizes(options, 20_000)[0]
    costs = []
    for number in (1, 10, 50):
        crowd = StreamGroup(server.port)
        body = run_body(f"deltas {size} 0.5", thread=f"read-by-{number}")
        await crowd.request(post(body))
        await asyncio.sleep(0.1)
        for _ in range(number - 1):
            await crowd.attach(f"read-by-{number}", json.loads(body)["runId"])
        before = server.cpu()
        await crowd.wait_ended()
        if crowd.watch.deltas != size * number:
            raise MeasureError(f"{crowd.watch.deltas} deltas of {size * number} arrived")
        costs.append((number, (server.cpu() - before) * MICRO / size / number))
        crowd.close()
    return [line("readers of one run", "event and reader", costs)]


def measure_ended_runs(options: Options) -> list[Line]:
    """Measure the cost of a short run beside few and beside many ended runs that can still be read, in turn."""
    sizes = scale_sizes(options, 100, 1_000, 12_000)  # more than the threads and runs that memory keeps
    with running(*[TRANSPORT] * len(sizes)) as servers, ExitStack() as stack:
        connections = [stack.enter_context(BlockingConnection(server.port)) for server in servers]
        for connection, size in zip(connections, sizes, strict=True):
            short_runs(connection, size)
        work = [partial(short_runs, connection, SHORT) for connection in connections]
        rounds = [[spent(*each, 1) for each in zip(servers, work, strict=True)] for _ in range(5 * REPEATS)]
    costs = [statistics.median(every) / SHORT for every in zip(*rounds, strict=True)]
    return [line("ended runs that are kept", "run of one delta", list(zip(sizes, costs, strict=True)))]


def short_runs(connection: BlockingConnection, count: int) -> None:
    """So many, one after another."""
    for _ in range(count):
        connection.run("deltas 1")
