"""From unit costs to what a number of open streams needs: CPU, memory, rows, bytes, commits and commands of the bus."""

import math
from dataclasses import dataclass

from agui_container.engine.persistence.leases import RENEW_SECONDS
from bench.scale.simulation import Flow, StreamLoad, TransactionTime, simulate

BUS_COMMANDS = 2
"""Commands for one append: XADD and EXPIRE."""

BUSY = 0.7
"""Share of a core that a replica may use, so that delays stay short."""


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """Measured costs.

    Attributes:
        event_cpu, transaction_cpu: seconds of a replica's CPU for an event, and for a transaction of its own.
        idle_cpu: share of a core of a replica without streams.
        database_event_cpu, database_transaction_cpu: the same for PostgreSQL.
        stream_memory, process_memory: bytes of an open stream with its first events, and of the process.
        event_wal: bytes of PostgreSQL's log for an event.
        event_bytes: bytes of an event that is stored, with its row and its place in the index.
        idle_commits, idle_commands: commits and commands of the bus in a second of a replica without streams.
        time: duration of a transaction.
    """

    event_cpu: float
    transaction_cpu: float
    idle_cpu: float
    database_event_cpu: float
    database_transaction_cpu: float
    stream_memory: float
    process_memory: float
    event_wal: float
    event_bytes: float
    idle_commits: float
    idle_commands: float
    time: TransactionTime


@dataclass(frozen=True, slots=True)
class Demand:
    """The needs of a load in a second. CPU is in cores."""

    flow: Flow
    cpu: float
    database_cpu: float
    commits: float
    rows: float
    wal: float
    bus_commands: float


def demand(load: StreamLoad, costs: UnitCosts) -> Demand:
    """Return what a load needs. Rows are those that are inserted or updated: events, positions of runs, leases."""
    flow = simulate(load, costs.time)
    commits = flow.transactions + load.replicas * costs.idle_commits
    return Demand(
        flow=flow,
        cpu=flow.events * costs.event_cpu + flow.transactions * costs.transaction_cpu + load.replicas * costs.idle_cpu,
        database_cpu=flow.events * costs.database_event_cpu + commits * costs.database_transaction_cpu,
        commits=commits,
        rows=flow.events + flow.appends + load.streams / RENEW_SECONDS,
        wal=flow.events * costs.event_wal,
        bus_commands=BUS_COMMANDS * flow.appends + load.replicas * costs.idle_commands,
    )


def replicas_for(streams: int, pace: float, costs: UnitCosts) -> int:
    """Return the least number of replicas that use at most ``BUSY`` of a core each. The simulation finds it."""
    low, high = 1, max(1, math.ceil(streams * pace * (costs.event_cpu + costs.transaction_cpu) / BUSY) + 1)
    while low < high:
        middle = (low + high) // 2
        load = StreamLoad(math.ceil(streams / middle), 1, pace)
        if demand(load, costs).cpu <= BUSY:
            high = middle
        else:
            low = middle + 1
    return low
