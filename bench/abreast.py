"""CPU of a paced event here and in ``AGUIApp``, both servers at work at once on the same core.

    python -m bench.abreast      two minutes

A virtual machine is quicker in one minute than in the next, which a ratio between two minutes shows as a difference of
servers. Side by side both have the same minute, and the same caches. Who was started first takes turns.
"""

import asyncio
import statistics
from collections.abc import Sequence
from contextlib import ExitStack

import uvloop

from bench.results import table
from bench.scenarios.paced import MICRO, OPENING, PER_SECOND, SETTLING, warm_up
from bench.server import AGENTCORE, TRANSPORT, Server
from bench.streams import Crowd, many_files

ROUNDS, SECONDS, STREAMS = 8, 8.0, 250


async def events(servers: Sequence[Server]) -> list[float]:
    """Microseconds of CPU for each event, of each server."""
    crowds = [Crowd(server.port) for server in servers]
    total = len(servers) * OPENING + SETTLING + SECONDS + 2.0
    for server, crowd in zip(servers, crowds, strict=True):
        await warm_up(server)
        await crowd.open(STREAMS, f"paced {int(total * PER_SECOND)} {1 / PER_SECOND}", OPENING)
    await asyncio.sleep(SETTLING)
    before = [(server.cpu(), crowd.watch.deltas) for server, crowd in zip(servers, crowds, strict=True)]
    await asyncio.sleep(SECONDS)
    after = [(server.cpu(), crowd.watch.deltas) for server, crowd in zip(servers, crowds, strict=True)]
    for crowd in crowds:
        crowd.close()
    return [(cpu - used) / (come - had) * MICRO for (cpu, come), (used, had) in zip(after, before, strict=True)]


def measured(*, ours_first: bool) -> tuple[float, float]:
    """One round: ours, and theirs."""
    pair = (TRANSPORT, AGENTCORE) if ours_first else (AGENTCORE, TRANSPORT)
    with ExitStack() as stack:
        found = uvloop.run(events([stack.enter_context(Server(contestant)) for contestant in pair]))
    return (found[0], found[1]) if ours_first else (found[1], found[0])


def main() -> None:
    """Measure and print."""
    many_files()
    rounds = [measured(ours_first=number % 2 == 0) for number in range(ROUNDS)]
    ratios = [ours / theirs for ours, theirs in rounds]
    lines = [(f"{ours:.1f} µs", f"{theirs:.1f} µs", f"{ours / theirs:.2f}") for ours, theirs in rounds]
    print(table(("ours", AGENTCORE.name, "ours by theirs"), lines))  # noqa: T201 - that is what it is for
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"\nmedian {statistics.median(ratios):.2f}, {spread}")  # noqa: T201 - that is what it is for


if __name__ == "__main__":
    main()
