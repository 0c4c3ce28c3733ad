"""One run after another on one connection: the cost of an event in runs of 1,000 deltas, and of a run of one delta.

The figure with a goal is CPU time, which is what one core gives; the time on the clock beside it holds whatever else
the machine did.

Rule: rounds alternate between the contestants, and every other round goes backwards, so that a drift of the machine
hits all of them. A contestant that does not deliver every delta is not measured but reported.
"""

import time
from collections.abc import Sequence

from bench.client import BlockingConnection
from bench.options import MeasureError, Options, Section
from bench.results import Row, Samples, compare
from bench.server import (
    AGENTCORE,
    ASSISTANT,
    LEAST,
    OFFICIAL,
    PYDANTIC_AI,
    RAW,
    STRANDS,
    STRINGS,
    TRANSPORT,
    Contestant,
    RunningContestant,
    running,
)

DELTAS = 1_000
MICRO = 1e6
SERVERS = (TRANSPORT, AGENTCORE, OFFICIAL, RAW)

Figures = dict[str, list[float]]
"""By contestant, one for each round."""


def measure(server: RunningContestant, script: str, size: int, seconds: float) -> tuple[float, float]:
    """Microseconds per delta: of the server's CPU, and on the clock."""
    text = f"{script} {size}"
    with BlockingConnection(server.port) as connection:
        connection.run(text)
        count = 0
        cpu, began = server.cpu(), time.perf_counter()
        while time.perf_counter() - began < seconds:
            deltas = connection.run(text).deltas
            if deltas != size:
                raise MeasureError(f"{server.name} gave {deltas} deltas of {size}:\n{server.read_output()}")
            count += deltas
        clock = time.perf_counter() - began
        return (server.cpu() - cpu) / count * MICRO, clock / count * MICRO


def rounds(contestants: Sequence[Contestant], script: str, size: int, options: Options) -> tuple[Figures, Figures]:
    """CPU and clock of every contestant, round by round."""
    cpu: Figures = {contestant.name: [] for contestant in contestants}
    clock: Figures = {contestant.name: [] for contestant in contestants}
    with running(*contestants) as servers:
        for server in servers:
            measure(server, script, size, options.seconds / 4)
        for number in range(options.rounds):
            for server in reversed(servers) if number % 2 else servers:
                used, waited = measure(server, script, size, options.seconds)
                cpu[server.name].append(used)
                clock[server.name].append(waited)
    return cpu, clock


def ready(options: Options) -> Section:
    """The same events behind every server, made beforehand."""
    return Section(transport("events made beforehand", 6.0, *rounds(SERVERS, "ready", DELTAS, options)))


def fresh(options: Options) -> Section:
    """Measure the same agent behind every server, and an agent that yields the same words as strings to ours."""
    both = rounds((*SERVERS, LEAST, STRINGS), "deltas", DELTAS, options)
    strings = [samples.pop(STRINGS.name) for samples in both]
    words = [{**samples, TRANSPORT.name: ours} for samples, ours in zip(both, strings, strict=True)]
    return Section(
        transport("events made by the agent", 4.0, *both) + transport("strings here, events there", 8.0, *words)
    )


def transport(what: str, goal: float, cpu: Samples, clock: Samples) -> list[Row]:
    """The rows of one kind of agent. ``goal`` is the ratio to AGUIApp that is wanted."""
    rows = compare(f"transport, {what}: CPU per event", "µs", cpu, {AGENTCORE.name: goal, RAW.name: 1.0})
    return rows + compare(f"transport, {what}: time per event", "µs", clock)


def assistant(options: Options) -> Section:
    """Our assistant on its offline model, and the frameworks on models of theirs that are loops."""
    cpu, clock = rounds((ASSISTANT, STRANDS, PYDANTIC_AI), "stream", DELTAS, options)
    rows = compare("assistant: CPU per delta", "µs", cpu, {STRANDS.name: 12.0, PYDANTIC_AI.name: 20.0})
    return Section(rows + compare("assistant: time per delta", "µs", clock))


def short(options: Options) -> Section:
    """Runs of one delta: the price of a run, whatever it says."""
    cpu, clock = rounds((TRANSPORT, AGENTCORE, OFFICIAL), "ready", 1, options)
    return Section(compare("run of one delta: CPU", "µs", cpu) + compare("run of one delta: time", "µs", clock))
