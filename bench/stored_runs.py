"""Cost of storing a paced stream with each store: CPU for each event, and the delay of events.

    python -m bench.stored_runs [sqlite:///PATH] [postgresql://...]

Streams of 50 tokens a second over SSE, as fast models give them. Memory is always measured first. The delay of an
event is the time since the event before, minus the pace.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from bench.agents import PACE_SECONDS
from bench.server import Contestant, ours, running

STREAMS = (1, 20, 50)
SECONDS = 5


def keeping(store: str) -> Contestant:
    """Return this container with a store."""
    contestant = ours("bench.agents:agent")
    return replace(contestant, environment={**contestant.environment, "AGUI_STORE": store})


async def read_token_times(client: httpx.AsyncClient, port: int, name: str) -> list[float]:
    """Read one stream, and return the times of its tokens."""
    body = {"threadId": name, "runId": name, "messages": [{"id": "m", "role": "user", "content": f"paced {SECONDS}"}]}
    async with client.stream("POST", f"http://127.0.0.1:{port}/invocations", json=body) as stream:
        return [time.perf_counter() async for line in stream.aiter_lines() if "TEXT_MESSAGE_CONTENT" in line]


async def measure_store(store: str) -> None:
    """Measure one store and print its lines."""
    with running(keeping(store)) as (server,):
        async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as client:
            await read_token_times(client, server.port, "warm")
            for count in STREAMS:
                before = server.cpu()
                names = (f"{count}-{number}" for number in range(count))
                came = await asyncio.gather(*(read_token_times(client, server.port, name) for name in names))
                micros = (server.cpu() - before) / sum(map(len, came)) * 1e6
                late = sorted(max(0.0, b - a - PACE_SECONDS) * 1e3 for each in came for a, b in pairwise(each))
                p50, p99 = statistics.median(late), late[int(len(late) * 0.99)]
                what = f"{store.partition(':')[0]:<11} {count:>3} streams"
                print(f"{what} {micros:7.0f} us/event   late p50 {p50:5.1f} ms   p99 {p99:6.1f} ms")  # noqa: T201


async def main(urls: Sequence[str]) -> None:
    """Measure each."""
    with TemporaryDirectory() as folder:
        for url in ("memory", *(urls or (f"sqlite:///{Path(folder)}/store.db",))):
            await measure_store(url)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
