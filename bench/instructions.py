"""Instructions that a server executes for a paced event and for a run, counted by valgrind's cachegrind.

    python -m bench.instructions      five minutes

A count is the same on a busy machine as on a quiet one, so it shows what a change of the code does where times only
show the machine. It is blind to the kernel and to memory that is not at hand. Each count is the difference of two loads
on servers of their own, so starting and stopping are not in it. valgrind is a package of Debian.
"""

import asyncio
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import uvloop

from bench.options import MeasureError
from bench.results import table
from bench.server import AGENTCORE, OFFICIAL, RAW, TRANSPORT, Contestant, RunningContestant
from bench.stream_client import StreamGroup

CONTESTANTS = (TRANSPORT, AGENTCORE, OFFICIAL, RAW)
VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
COUNTED = re.compile(r"I\s+refs:\s+([\d,]+)")
STREAMS, FEW, MANY = 20, 10, 60
"""Streams of as many events, one every ``PAUSE`` seconds; and runs of one delta, one after another."""
PAUSE = 0.2
STOP_SECONDS = 60.0

Load = Callable[[RunningContestant, int], Awaitable[None]]


async def run_paced(server: RunningContestant, events: int) -> None:
    """Run paced streams at the same time, with this number of events each."""
    await run_streams(server, f"paced {events} {PAUSE}", STREAMS)


async def runs(server: RunningContestant, count: int) -> None:
    """Run this number of runs of one delta, each over a connection of its own."""
    for _ in range(count):
        await run_streams(server, "deltas 1", 1)


async def run_streams(server: RunningContestant, text: str, streams: int) -> None:
    """Run streams and wait until they end."""
    crowd = StreamGroup(server.port)
    await crowd.open(streams, text, streams / 10)
    await crowd.wait_ended()
    crowd.close()


def count_instructions(contestant: Contestant, load: Load, size: int) -> int:
    """Count the instructions of a server with this load, from its start to its end."""
    watched = Contestant(
        contestant.name, VALGRIND + contestant.command, {**contestant.environment, "PYTHONHASHSEED": "0"}
    )
    with RunningContestant(watched) as server:
        uvloop.run(run_after_warmup(server, load, size))
        os.kill(server.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while (found := COUNTED.search(server.read_output())) is None:
            if time.monotonic() > deadline:
                raise MeasureError(f"{server.name} does not stop:\n{server.read_output()}")
            time.sleep(0.1)
    return int(found[1].replace(",", ""))


async def run_after_warmup(server: RunningContestant, load: Load, size: int) -> None:
    """Run the load after a first run, which causes all lazy imports."""
    await run_streams(server, "deltas 3", 1)
    await load(server, size)
    await asyncio.sleep(1.0)


def between(contestant: Contestant, load: Load, units: int) -> str:
    """Instructions for each unit by which the two loads differ."""
    found = count_instructions(contestant, load, MANY) - count_instructions(contestant, load, FEW)
    return f"{found / units:,.0f}"


def main() -> None:
    """Print a table."""
    if shutil.which(VALGRIND[0]) is None:
        raise SystemExit("valgrind is not installed: apt-get install valgrind")
    events, more = STREAMS * (MANY - FEW), MANY - FEW
    rows = [(each.name, between(each, run_paced, events), between(each, runs, more)) for each in CONTESTANTS]
    sys.stdout.write(table(("instructions", "for a paced event", "for a run of one delta"), rows) + "\n")


if __name__ == "__main__":
    main()
