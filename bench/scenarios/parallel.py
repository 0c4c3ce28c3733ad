"""CPU of a paced event here and in ``AGUIApp``, both servers at work at once on the same core.

A virtual machine is quicker in one minute than in the next, which a ratio between two minutes shows as a difference of
servers. Side by side both have the same minute, and the same caches. Who was started first takes turns.
"""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

import uvloop

from bench.options import Options, Section
from bench.results import compare
from bench.scenarios.paced import MICRO, OPENING, PER_SECOND, SETTLING, warm_up
from bench.server import AGENTCORE, TRANSPORT, RunningContestant
from bench.stream_client import StreamGroup, many_files

PAIR = (TRANSPORT, AGENTCORE)


def measure(options: Options) -> Section:
    """Rounds of both."""
    many_files()
    cpu: dict[str, list[float]] = {contestant.name: [] for contestant in PAIR}
    for number in range(options.abreast_rounds):
        with ExitStack() as stack:
            servers = [stack.enter_context(RunningContestant(one)) for one in (reversed(PAIR) if number % 2 else PAIR)]
            for server, cost in zip(servers, uvloop.run(events(servers, options)), strict=True):
                cpu[server.name].append(cost)
    what = f"paced, {options.streams // len(PAIR)} streams of each at once: CPU per event"
    return Section(compare(what, "µs", cpu, {AGENTCORE.name: 1 / 0.9}))


async def events(servers: Sequence[RunningContestant], options: Options) -> list[float]:
    """Microseconds of CPU for each event, of each server."""
    crowds = [StreamGroup(server.port) for server in servers]
    total = len(servers) * OPENING + SETTLING + options.paced_seconds + 2.0
    for server, crowd in zip(servers, crowds, strict=True):
        await warm_up(server)
        await crowd.open(options.streams // len(servers), f"paced {int(total * PER_SECOND)} {1 / PER_SECOND}", OPENING)
    await asyncio.sleep(SETTLING)
    before = [(server.cpu(), crowd.watch.deltas) for server, crowd in zip(servers, crowds, strict=True)]
    await asyncio.sleep(options.paced_seconds)
    after = [(server.cpu(), crowd.watch.deltas) for server, crowd in zip(servers, crowds, strict=True)]
    for crowd in crowds:
        crowd.close()
    return [(cpu - used) / (come - had) * MICRO for (cpu, come), (used, had) in zip(after, before, strict=True)]
