"""The measurements: runs, the assistant, paced streams, starts and memory.

Rule: rounds alternate between the contestants, and every other round goes backwards, so that a drift of the machine
hits all of them. A contestant that does not deliver every delta stops the measurement.
"""

import asyncio
import compileall
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import uvloop

from bench.client import BlockingConnection, StreamGroup
from bench.environments import ROOT
from bench.results import MEGA, MICRO, MILLI, Measure, percentile
from bench.servers import Contestant, RunningServer, agentcore_program, ours, peer, running

EVENTS_PER_SECOND = 20
OPENING_SECONDS, SETTLING_SECONDS = 1.5, 0.5
LOAD_SECONDS = 5.0
Server = TypeVar("Server")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long and how often everything is measured.

    Attributes:
        other: another checkout of this server that is measured as well.
    """

    rounds: int = 7
    seconds: float = 1.0
    streams: int = 500
    paced_rounds: int = 5
    paced_seconds: float = 8.0
    starts: int = 9
    other: Path | None = None

    def servers(self, agent: str = "bench.agents:agent") -> list[Contestant]:
        """Return this server, and the other checkout if one is measured."""
        return [ours(agent, checkout) for checkout in (ROOT, self.other) if checkout]


class MeasureError(Exception):
    """A contestant did not deliver the whole run, so there is nothing to compare."""


def transports(sizes: Sizes) -> list[Contestant]:
    """Return the servers that serve the common agent."""
    return [*sizes.servers(), peer("AGUIApp", "agentcore"), peer("raw ASGI", "raw")]


def in_rounds(servers: Sequence[Server], rounds: int) -> Iterator[Server]:
    """Yield every server once in each round, in every other round backwards."""
    for number in range(rounds):
        yield from reversed(servers) if number % 2 else servers


# --- runs, one after another on one connection ------------------------------------------------------------------------


def cost_of_runs(server: RunningServer, deltas: int, seconds: float) -> float:
    """Return the microseconds of the server's CPU for a run."""
    text, count = f"{server.contestant.word} {deltas}", 0
    with BlockingConnection(server.port) as connection:
        connection.run(text)
        cpu, began = server.cpu(), time.perf_counter()
        while time.perf_counter() - began < seconds:
            got = connection.run(text)
            if got != deltas:
                raise MeasureError(f"{server.name} gave {got} deltas of {deltas}:\n{server.read_output()}")
            count += 1
        return (server.cpu() - cpu) / count * MICRO


def costs_of_runs(contestants: Sequence[Contestant], deltas: int, sizes: Sizes) -> dict[str, list[float]]:
    """Return the costs of all contestants, round by round."""
    costs: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    with running(contestants) as servers:
        for server in servers:
            cost_of_runs(server, deltas, sizes.seconds / 4)
        for server in in_rounds(servers, sizes.rounds):
            costs[server.name].append(cost_of_runs(server, deltas, sizes.seconds))
    return costs


def runs(sizes: Sizes) -> list[Measure]:
    """Measure runs of 1, 50 and 1,000 deltas."""
    targets = {1: 1.2, 50: 2.0, 1_000: 4.5}
    return [
        Measure(
            f"run of {count:,} deltas: CPU", "µs", costs_of_runs(transports(sizes), count, sizes), {"AGUIApp": goal}
        )
        for count, goal in targets.items()
    ]


def assistant(sizes: Sizes) -> list[Measure]:
    """Measure our assistant on its offline model, and frameworks on models of theirs that are loops."""
    frameworks = [peer("ag-ui-strands", "strands", "stream"), peer("Pydantic AI", "pydantic_ai_adapter", "stream")]
    costs = costs_of_runs([*sizes.servers("assistant"), *frameworks], 1_000, sizes)
    per_delta = {name: [cost / 1_000 for cost in every] for name, every in costs.items()}
    return [Measure("assistant, 1,000 deltas: CPU per delta", "µs", per_delta, {"ag-ui-strands": 25.0})]


# --- many streams at the speed of a model -----------------------------------------------------------------------------


def paced(sizes: Sizes) -> list[Measure]:
    """Measure many streams at once, each round on a fresh server."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    contestants = transports(sizes)
    cpu: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    delay: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for contestant in in_rounds(contestants, sizes.paced_rounds):
        with RunningServer(contestant) as server:
            used, late = uvloop.run(paced_streams(server, sizes))
        cpu[contestant.name].append(used)
        delay[contestant.name].append(late)
    what = f"{sizes.streams} streams of {EVENTS_PER_SECOND} events a second"
    return [
        Measure(f"{what}: CPU per event", "µs", cpu, {"AGUIApp": 1.5}),
        Measure(f"{what}: delay of an event, p99", "ms", delay),
    ]


async def paced_streams(server: RunningServer, sizes: Sizes) -> tuple[float, float]:
    """Return the microseconds of CPU per event, and the delay that 99% of the events stay below, in milliseconds."""
    group = StreamGroup(server.port)
    total = OPENING_SECONDS + SETTLING_SECONDS + sizes.paced_seconds + 2.0
    text = f"paced {int(total * EVENTS_PER_SECOND)} {1 / EVENTS_PER_SECOND}"
    await group.open(sizes.streams, text, OPENING_SECONDS)
    await asyncio.sleep(SETTLING_SECONDS)
    cpu, first, delays = server.cpu(), group.watch.deltas, len(group.watch.delays)
    await asyncio.sleep(sizes.paced_seconds)
    used, events = server.cpu() - cpu, group.watch.deltas - first
    late = [delay / MICRO for delay in group.watch.delays[delays:]]
    group.close()
    if not events:
        raise MeasureError(f"{server.name} sent nothing:\n{server.read_output()}")
    return used / events * MICRO, percentile(late, 0.99)


# --- starts and memory ------------------------------------------------------------------------------------------------


def starts(sizes: Sizes) -> list[Measure]:
    """Measure the start of a process to the end of its first run, after one start that only warms the disk cache."""
    for folder in (ROOT / "bench", *(checkout / "app" for checkout in (ROOT, sizes.other) if checkout)):
        compileall.compile_dir(folder, quiet=1)  # packages have their bytecode from pip
    contestants = [*sizes.servers(), agentcore_program()]
    cpu: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    clock: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for contestant in contestants:
        first_run(contestant)
    for contestant in in_rounds(contestants, sizes.starts):
        used, waited = first_run(contestant)
        cpu[contestant.name].append(used * MILLI)
        clock[contestant.name].append(waited * MILLI)
    what = "process start to the end of a first run of one delta"
    return [Measure(f"{what}: CPU", "ms", cpu, {"AGUIApp": 1.4}), Measure(f"{what}: time", "ms", clock)]


def first_run(contestant: Contestant) -> tuple[float, float]:
    """Return the seconds of CPU and the seconds to the end of the first run."""
    with RunningServer(contestant) as server, BlockingConnection(server.port) as connection:
        connection.run(f"{contestant.word} 1")
        return server.cpu(), time.perf_counter() - server.began


def memory(sizes: Sizes) -> list[Measure]:
    """Measure the memory after a first run, and after some seconds of runs of 50 deltas at full speed."""
    contestants = [*sizes.servers(), agentcore_program()]
    seconds = min(LOAD_SECONDS, sizes.paced_seconds)
    started: dict[str, list[float]] = {}
    loaded: dict[str, list[float]] = {}
    for contestant in contestants:
        with RunningServer(contestant) as server:
            with BlockingConnection(server.port) as connection:
                connection.run(f"{contestant.word} 1")
            started[contestant.name] = [server.memory() / MEGA]
            cost_of_runs(server, 50, seconds)
            loaded[contestant.name] = [server.memory() / MEGA]
    return [
        Measure("memory after a first run", "MB", started),
        Measure(f"memory after {seconds:g} s of runs of 50 deltas", "MB", loaded),
    ]


Scenario = Callable[[Sizes], list[Measure]]
SCENARIOS: dict[str, Scenario] = {
    "runs": runs,
    "assistant": assistant,
    "paced": paced,
    "starts": starts,
    "memory": memory,
}


def pace() -> float:
    """Return the milliseconds that this core needs for a fixed computation: a virtual core's speed varies."""
    taken = []
    for _ in range(3):
        began, numbers = time.process_time(), dict[int, int]()
        for number in range(500_000):
            numbers[number & 1023] = number
        taken.append(time.process_time() - began)
    return statistics.median(taken) * MILLI
