"""Unit costs of open streams, the check of their prediction, and the demand of 10,000 to a million streams.

    make scale STORE=postgresql://USER@HOST/DATABASE BUS=redis://HOST:PORT/0

Both servers must be on this machine, because their CPU is read from its kernel, and should serve nothing else. One
replica without streams, with few and with many gives the unit costs. Two and four replicas are then predicted and
measured.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence

from agui_container.stores import open_store
from bench.machine import pace
from bench.results import table
from bench.scale.demand import Demand, UnitCosts, demand, replicas_for
from bench.scale.measurement import Measured, RunWrites, measure, measure_runs
from bench.scale.simulation import StreamLoad, TransactionTime
from bench.server import CLIENT_CORE, pin
from bench.store_throughput import appending
from bench.stream_client import many_files

PACE = 5.0
"""Events of a stream in a second while it is measured: few, because a machine with two cores has all replicas."""
FEW, MANY = StreamLoad(4, pace=PACE), StreamLoad(40, pace=PACE)
CHECKED = (StreamLoad(20, 2, PACE), StreamLoad(60, 2, PACE), StreamLoad(20, 4, PACE), StreamLoad(60, 4, PACE))
STREAMS, PACES = (10_000, 100_000, 1_000_000), (20.0, 2.0)
"""Open streams, and their events in a second: all are answered, or a tenth of them."""
BATCH, APPENDED = 100, 4_000
MICRO = 1e6


async def transaction_time(store: str) -> TransactionTime:
    """Measure the duration of a transaction with one event and with many."""
    opened = open_store(store)
    await opened.open()
    try:
        one = await appending(opened, 1, 300) / 300
        many = await appending(opened, BATCH, APPENDED) / (APPENDED / BATCH)
    finally:
        await opened.aclose()
    event = max(0.0, many - one) / (BATCH - 1)
    return TransactionTime(one - event, event)


def split(few: Measured, many: Measured, idle: Measured, name: str) -> tuple[float, float]:
    """Return the seconds of CPU for an event and for a transaction that explain both loads; none is below zero."""
    events = [each.rates.events for each in (few, many)]
    commits = [each.rates.commits - idle.rates.commits for each in (few, many)]
    used = [getattr(each.rates, name) - getattr(idle.rates, name) for each in (few, many)]
    determinant = events[0] * commits[1] - events[1] * commits[0]
    event = (used[0] * commits[1] - used[1] * commits[0]) / determinant if determinant else -1.0
    event = min(max(event, 0.0), used[1] / events[1])
    return event, max(0.0, used[1] - event * events[1]) / commits[1]


async def unit_costs(store: str, bus: str, seconds: float) -> UnitCosts:
    """Measure the unit costs with one replica."""
    idle, few, many = [await measure(store, bus, load, seconds) for load in (StreamLoad(0), FEW, MANY)]
    event, transaction = split(few, many, idle, "cpu")
    database_event, database_transaction = split(few, many, idle, "database_cpu")
    return UnitCosts(
        event_cpu=event,
        transaction_cpu=transaction,
        idle_cpu=idle.rates.cpu,
        database_event_cpu=database_event,
        database_transaction_cpu=database_transaction,
        stream_memory=many.open_memory / MANY.streams,
        process_memory=idle.rates.memory,
        event_wal=many.rates.wal / many.rates.events,
        event_bytes=many.rates.stored_bytes / many.rates.stored_events,
        idle_commits=idle.rates.commits,
        idle_commands=idle.rates.bus_commands,
        time=await transaction_time(store),
    )


def cpu_lines(owner: str, event: float, transaction: float) -> Iterator[tuple[str, str]]:
    """Iterate over the CPU that a process needs, as text. The costs are in seconds."""
    yield f"{owner}'s CPU for an event", f"{event * MICRO:.0f} µs"
    yield f"{owner}'s CPU for a transaction", f"{transaction * MICRO:.0f} µs"


def cost_lines(costs: UnitCosts) -> Iterator[tuple[str, str]]:
    """Iterate over the unit costs as text."""
    yield from cpu_lines("a replica", costs.event_cpu, costs.transaction_cpu)
    yield "a replica without streams", f"{costs.idle_cpu:.3f} cores"
    yield from cpu_lines("PostgreSQL", costs.database_event_cpu, costs.database_transaction_cpu)
    yield "memory of a replica without streams", f"{costs.process_memory / 1e6:.0f} MB"
    yield "memory of an open stream, with its first events", f"{costs.stream_memory / 1024:.0f} KiB"
    yield "PostgreSQL's log for an event", f"{costs.event_wal:.0f} B"
    yield "stored bytes of an event, with its index", f"{costs.event_bytes:.0f} B"
    yield "commits of a replica without streams", f"{costs.idle_commits:.1f} /s"
    yield "commands of a replica without streams to the bus", f"{costs.idle_commands:.1f} /s"
    yield "a transaction", f"{costs.time.fixed * 1e3:.2f} ms + {costs.time.event * MICRO:.0f} µs for each event"


def run_lines(run: RunWrites) -> Iterator[tuple[str, str]]:
    """Iterate over what a run writes, as text."""
    yield "events stored", f"{run.events:.0f}"
    yield "rows inserted and updated", f"{run.rows:.1f}"
    yield "PostgreSQL's log", f"{run.wal / 1e3:.1f} kB"
    yield "bytes in the database, with indexes", f"{run.stored_bytes / 1e3:.1f} kB"
    yield "commands to the bus", f"{run.bus_commands:.1f}"


def check_lines(predicted: Demand, found: Measured) -> Iterator[tuple[str, ...]]:
    """Iterate over what was predicted and what was measured."""
    what = f"{found.load.streams} streams on {found.load.replicas} replicas"
    pairs = (
        ("events/s", predicted.flow.events, found.rates.events),
        ("CPU of the replicas, cores", predicted.cpu, found.rates.cpu),
        ("CPU of PostgreSQL, cores", predicted.database_cpu, found.rates.database_cpu),
        ("commits/s", predicted.commits, found.rates.commits),
        ("rows written/s", predicted.rows, found.rates.rows),
        ("PostgreSQL's log, kB/s", predicted.wal / 1e3, found.rates.wal / 1e3),
        ("commands of the bus/s", predicted.bus_commands, found.rates.bus_commands),
    )
    for name, expected, measured in pairs:
        error = f"{(expected / measured - 1) * 100:+.0f} %" if measured else ""
        yield what, name, f"{expected:.3g}", f"{measured:.3g}", error
    yield (
        what,
        "delay p50 and p99, ms",
        f"{predicted.flow.wait_p50 * 1e3:.1f}, {predicted.flow.wait_p99 * 1e3:.1f}",
        (f"{found.late_p50 * 1e3:.1f}, {found.late_p99 * 1e3:.1f}"),
        "",
    )


def demand_line(streams: int, load_pace: float, costs: UnitCosts) -> tuple[str, ...]:
    """Return what so many streams need."""
    replicas = replicas_for(streams, load_pace, costs)
    # All replicas are alike, and one of them stands for all, so a part of a large load is simulated.
    one = demand(StreamLoad(max(1, round(streams / replicas)), 1, load_pace), costs)
    return (
        f"{streams:,}",
        f"{replicas:,}",
        f"{one.flow.events * replicas:,.0f}",
        f"{one.commits * replicas:,.0f}",
        f"{one.rows * replicas:,.0f}",
        f"{one.wal * replicas / 1e6:,.0f} MB",
        f"{one.database_cpu * replicas:,.0f}",
        f"{one.bus_commands * replicas:,.0f}",
        f"{(replicas * costs.process_memory + streams * costs.stream_memory) / 1e9:,.0f} GB",
    )


HEAD = ("streams", "replicas", "events/s", "commits/s", "rows/s", "log/s", "cores of PostgreSQL", "bus/s", "memory")


async def main(store: str, bus: str, seconds: float) -> None:
    """Measure, predict, check, and print."""
    costs = await unit_costs(store, bus, seconds)
    print_part("Unit costs", table(("what", "cost"), cost_lines(costs)))
    print_part("A run of one delta writes", table(("what", "amount"), run_lines(await measure_runs(store, bus))))
    lines: list[Sequence[str]] = []
    for load in CHECKED:
        lines += check_lines(demand(load, costs), await measure(store, bus, load, seconds))
    print_part("Prediction and measurement", table(("load", "what", "predicted", "measured", "error"), lines))
    for load_pace in PACES:
        rows = [demand_line(streams, load_pace, costs) for streams in STREAMS]
        print_part(f"Demand at {load_pace:g} events a second", table(HEAD, rows))


def print_part(title: str, text: str) -> None:
    """Print a table."""
    sys.stdout.write(f"**{title}**\n\n{text}\n\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("bus")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    arguments = parser.parse_args()
    many_files()
    pin(CLIENT_CORE)
    sys.stdout.write(f"A fixed piece of work takes {pace():.0f} ms of the core of the replicas.\n\n")
    asyncio.run(main(arguments.store, arguments.bus, arguments.seconds))
