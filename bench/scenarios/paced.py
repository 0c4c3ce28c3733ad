"""Many streams at the speed of a model: CPU per event, delay of events, memory per stream and per kept event.

Each delta says when it was sent, by the clock that all processes of the machine share. A fresh server for each
measurement, because memory that was used once is not given back.
"""

import asyncio
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import uvloop

from bench.options import Extra, Options, Section
from bench.results import Samples, compare, percentile
from bench.server import AGENTCORE, OFFICIAL, RAW, TRANSPORT, RunningContestant
from bench.stream_client import StreamGroup, many_files

PER_SECOND = 20
OPENING = 1.5
"""Seconds in which the streams are opened, one after another; then half a second to settle."""
SETTLING = 0.5
WARM = 20
CONTESTANTS = (TRANSPORT, AGENTCORE, OFFICIAL, RAW)
MS, MICRO, KIB = 1e-6, 1e6, 1024


@dataclass(frozen=True, slots=True)
class Found:
    """One measurement.

    Attributes:
        cpu: µs of CPU per event.
        p50: median delay of an event, in ms.
        p99: the delay that 99% of the events stay below, in ms.
        opened: KiB per stream after opening, with the events of the first two seconds.
        ended: KiB per stream at the end.
        kept: bytes by which each further event raises the memory of its stream.
        empty: KiB per stream after opening, less what its events take.
    """

    cpu: float
    p50: float
    p99: float
    opened: float
    ended: float
    kept: float
    empty: float


def measure(options: Options) -> Section:
    """Rounds of all contestants."""
    many_files()
    found: dict[str, list[Found]] = {contestant.name: [] for contestant in CONTESTANTS}
    for number in range(options.paced_rounds):
        for contestant in reversed(CONTESTANTS) if number % 2 else CONTESTANTS:
            with RunningContestant(contestant) as server:
                found[server.name].append(uvloop.run(watch(server, options)))
    cpu: Samples = {name: [one.cpu for one in every] for name, every in found.items()}
    empty: Samples = {name: [one.empty for one in every] for name, every in found.items()}
    opened: Samples = {name: [one.opened for one in every] for name, every in found.items()}
    what = f"paced, {options.streams} streams of {PER_SECOND}/s"
    rows = compare(f"{what}: CPU per event", "µs", cpu, {AGENTCORE.name: 1 / 0.9})
    rows += compare(f"{what}: memory per stream, without kept events", "KiB", empty, {AGENTCORE.name: 1 / 1.3})
    rows += compare(f"{what}: memory per stream, with its first events", "KiB", opened)
    return Section(rows, [Extra(what, ("", *HEAD), list(lines(found)))])


async def watch(server: RunningContestant, options: Options) -> Found:
    """One server under load."""
    await warm_up(server)
    before = server.memory()
    crowd = StreamGroup(server.port)
    total = OPENING + SETTLING + options.paced_seconds + 2.0
    await crowd.open(options.streams, f"paced {int(total * PER_SECOND)} {1 / PER_SECOND}", OPENING)
    await asyncio.sleep(SETTLING)
    opened = server.memory() - before
    cpu, first, delays = server.cpu(), crowd.watch.deltas, len(crowd.watch.delays)
    await asyncio.sleep(options.paced_seconds)
    cpu, deltas = server.cpu() - cpu, crowd.watch.deltas - first
    late = [delay * MS for delay in crowd.watch.delays[delays:]]
    ended = server.memory() - before
    crowd.close()
    kept = max(0.0, (ended - opened) / deltas)
    each = [memory / options.streams / KIB for memory in (opened, ended, opened - first * kept)]
    return Found(cpu / deltas * MICRO, percentile(late, 0.5), percentile(late, 0.99), each[0], each[1], kept, each[2])


async def warm_up(server: RunningContestant) -> None:
    """A few streams, so that what is loaded on first use is not counted as memory of streams."""
    crowd = StreamGroup(server.port)
    await crowd.open(WARM, "paced 5 0.01", 0.1)
    await crowd.wait_ended()
    crowd.close()


HEAD = (
    "CPU per event",
    "delay p50",
    "delay p99",
    "p99 over rounds",
    "memory per stream",
    "at the end",
    "per kept event",
    "stream without them",
)


def lines(found: dict[str, list[Found]]) -> Iterator[tuple[str, ...]]:
    """Medians, and the spread of what has a goal."""
    for name, every in found.items():
        late = [one.p99 for one in every]
        yield (
            name,
            f"{statistics.median(one.cpu for one in every):.1f} µs",
            f"{statistics.median(one.p50 for one in every):.2f} ms",
            f"{statistics.median(late):.2f} ms",
            f"{min(late):.2f} to {max(late):.2f} ms",
            f"{statistics.median(one.opened for one in every):.1f} KiB",
            f"{statistics.median(one.ended for one in every):.1f} KiB",
            f"{statistics.median(one.kept for one in every):.0f} B",
            f"{statistics.median(one.empty for one in every):.1f} KiB",
        )
