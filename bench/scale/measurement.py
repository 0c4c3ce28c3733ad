"""Measurement of a load on real replicas: CPU of the processes, and the counters of PostgreSQL and of the bus."""

import asyncio
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import redis

from bench.results import percentile
from bench.scale.simulation import StreamLoad
from bench.server import Contestant, RunningContestant, ours, running
from bench.stream_client import StreamGroup

OPENING, SETTLING, ENDING = 2.0, 3.0, 3.0
"""Seconds in which the streams are opened, in which they settle, and that they last longer than the measurement."""

RUNS = 100
"""Runs of one delta, one after the other, whose rows and bytes are counted."""

TICKS = 100
"""Clock ticks of Linux in a second, in which it counts the CPU of processes."""

COUNTERS = """
    SELECT xact_commit, tup_inserted + tup_updated, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0'),
           pg_relation_size('envelopes') + pg_indexes_size('envelopes'), (SELECT count(*) FROM envelopes)
    FROM pg_stat_database WHERE datname = current_database()
"""


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters at one moment."""

    cpu: float
    database_cpu: float
    commits: float
    rows: float
    wal: float
    stored_bytes: float
    stored_events: float
    bus_commands: float
    memory: float
    events: float

    def since(self, earlier: "Counters", seconds: float) -> "Counters":
        """Return the difference in a second. ``memory`` is no counter and stays as it is."""
        rates = {name: (getattr(self, name) - getattr(earlier, name)) / seconds for name in self.__slots__}
        return Counters(**{**rates, "memory": self.memory})


@dataclass(frozen=True, slots=True)
class Measured:
    """A load, its counters in a second, and how late its events came (seconds). ``open_memory`` is in bytes."""

    load: StreamLoad
    rates: Counters
    late_p50: float
    late_p99: float
    open_memory: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RunWrites:
    """Rows, bytes and commands to the bus that one short run writes, from its start to its end."""

    events: float
    rows: float
    wal: float
    stored_bytes: float
    bus_commands: float


class MeasuredReplicas:
    """MeasuredReplicas on one PostgreSQL and one bus, and their counters."""

    def __init__(self, store: str, bus: str, servers: list[RunningContestant]) -> None:
        self._servers = servers
        self.groups = [StreamGroup(server.port) for server in servers]
        self._store, self._bus = psycopg.connect(store, autocommit=True), redis.Redis.from_url(bus)

    def counters(self) -> Counters:
        """Read all counters. PostgreSQL's are those of ended transactions."""
        self._store.execute("SELECT pg_stat_force_next_flush()")
        row = self._store.execute(COUNTERS).fetchone() or ()
        commits, rows, wal, size, events = map(float, row)
        pids = [pid for (pid,) in self._store.execute("SELECT pid FROM pg_stat_activity").fetchall()]
        stats = self._bus.info("commandstats")
        calls = sum(each["calls"] for name, each in dict(stats).items() if name != "cmdstat_info")
        return Counters(
            cpu=sum(server.cpu() for server in self._servers),
            database_cpu=sum(map(cpu_of, pids)),
            commits=commits,
            rows=rows,
            wal=wal,
            stored_bytes=size,
            stored_events=events,
            bus_commands=float(calls),
            memory=float(sum(server.memory() for server in self._servers)),
            events=float(sum(group.watch.deltas for group in self.groups)),
        )

    def database_size(self) -> float:
        """Return the bytes of all tables and indexes."""
        [size] = self._store.execute("SELECT pg_database_size(current_database())").fetchone() or (0,)
        return float(size)

    def close(self) -> None:
        """Hang up."""
        for group in self.groups:
            group.close()
        self._store.close()
        self._bus.close()


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU of a process of this machine; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def replica(store: str, bus: str) -> Contestant:
    """Return this container with the store and the bus that replicas share."""
    contestant = ours("bench.script:agent")
    return replace(contestant, environment={**contestant.environment, "AGUI_STORE": store, "AGUI_BUS": bus})


@contextmanager
def cluster(store: str, bus: str, replicas: int) -> Iterator[MeasuredReplicas]:
    """Provide replicas that have served a first stream each."""
    with running(*[replica(store, bus)] * replicas) as servers:
        opened = MeasuredReplicas(store, bus, servers)
        try:
            yield opened
        finally:
            opened.close()


async def measure(store: str, bus: str, load: StreamLoad, seconds: float) -> Measured:
    """Measure a load. Its streams are divided equally, and read where they run."""
    with cluster(store, bus, load.replicas) as measured:
        await asyncio.gather(*(warm_up(group) for group in measured.groups))
        empty = measured.counters().memory
        total = OPENING + SETTLING + seconds + ENDING
        text = f"paced {int(total * load.pace)} {1 / load.pace}"
        each = load.streams // load.replicas
        await asyncio.gather(*(group.open(each, text, OPENING) for group in measured.groups if each))
        await asyncio.sleep(SETTLING)
        before, late_before = measured.counters(), [len(group.watch.delays) for group in measured.groups]
        await asyncio.sleep(seconds)
        after = measured.counters()
        late = [
            delay / 1e9
            for group, first in zip(measured.groups, late_before, strict=True)
            for delay in group.watch.delays[first:]
        ]
        return Measured(
            load,
            after.since(before, seconds),
            statistics.median(late) if late else 0.0,
            percentile(late, 0.99) if late else 0.0,
            before.memory - empty,
            seconds,
        )


async def measure_runs(store: str, bus: str) -> RunWrites:
    """Measure the writes of runs of one delta, each on a thread of its own."""
    with cluster(store, bus, 1) as measured:
        [group] = measured.groups
        await warm_up(group)
        before, size = measured.counters(), measured.database_size()
        for _ in range(RUNS):
            await group.open(1, "deltas 1", 0.0)
            await group.wait_ended()
        await asyncio.sleep(SETTLING)
        written = measured.counters().since(before, RUNS)
        grown = (measured.database_size() - size) / RUNS
    return RunWrites(written.stored_events, written.rows, written.wal, grown, written.bus_commands)


async def warm_up(group: StreamGroup) -> None:
    """Run one short stream, so that what is loaded on first use is not measured."""
    await group.open(1, "paced 5 0.01", 0.0)
    await group.wait_ended()
