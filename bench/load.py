"""A process that reads runs, so that a server is busy while another process measures: ``python -m bench.load``.

Rule: it runs at low priority on the client's core, so that it delays the server and not the measurement.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvloop

from bench.server import ROOT, RunningContestant
from bench.stream_client import StreamGroup, many_files

SETTLING = 2.0


@contextmanager
def under_load(server: RunningContestant, count: int, text: str) -> Iterator[None]:
    """Read ``count`` runs of ``text`` in another process during the block."""
    command = [sys.executable, "-m", "bench.load", str(server.port), str(count), text]
    process = subprocess.Popen(command, cwd=ROOT)  # noqa: S603 - this module
    try:
        time.sleep(SETTLING)
        yield
    finally:
        process.kill()
        process.wait()


async def load(port: int, count: int, text: str) -> None:
    """Keep the runs open until the process is killed."""
    crowd = StreamGroup(port)
    await crowd.open(count, text, 1.0)
    await asyncio.Event().wait()


if __name__ == "__main__":
    os.nice(10)
    many_files()
    uvloop.run(load(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
