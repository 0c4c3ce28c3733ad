"""Duration of a stop: from the request to cancel until the reader has the run's end.

    python -m bench.cancel_latency [STORE] [BUS]

Each line is one way: an agent that waits for its model, and one whose tool blocks a thread; read over SSE and over a
WebSocket; cancelled by a route, and by a frame of the same socket. With a store that survives the process,
a second replica cancels the runs of the first one; ``BUS`` connects the two.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import count

import httpx
from websockets.asyncio.client import connect

from bench.server import Contestant, RunningContestant, ours, running

ROUNDS = 30
SAYS = {"a stalled model": ("wait 3600", "TEXT_MESSAGE_CONTENT"), "a blocking tool": ("call block {}", "TOOL_CALL_END")}
"""The message of a run, and the last event before the agent is silent."""

RUNS = count(1)

Way = Callable[[RunningContestant, RunningContestant, str, str], Awaitable[float]]


def body(text: str) -> dict[str, object]:
    """A run of its own thread."""
    name = f"stop-{next(RUNS)}"
    return {"threadId": name, "runId": name, "messages": [{"id": "m1", "role": "user", "content": text}]}


async def over_sse(reading: RunningContestant, canceller: RunningContestant, text: str, last: str) -> float:
    """Read over SSE, and cancel by a route of ``canceller``."""
    run = body(text)
    read, cancel = (f"http://127.0.0.1:{server.port}" for server in (reading, canceller))
    path = f"{cancel}/runs/{run['runId']}/cancel?threadId={run['threadId']}"
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream("POST", f"{read}/invocations", json=run) as stream,
    ):
        lines = stream.aiter_lines()
        await until(lines, last)
        began = time.perf_counter()
        await client.post(path)
        await until(lines, "RUN_FINISHED")
        return time.perf_counter() - began


async def over_ws(reading: RunningContestant, _: RunningContestant, text: str, last: str) -> float:
    """Read over a WebSocket, and cancel by a frame."""
    run = body(text)
    async with connect(f"ws://127.0.0.1:{reading.port}/ws", proxy=None) as socket:
        await socket.send(json.dumps(run))
        while json.loads(await socket.recv()).get("type") != last:
            pass
        began = time.perf_counter()
        await socket.send(json.dumps({"command": {"type": "cancel", "runId": run["runId"]}}))
        while json.loads(await socket.recv()).get("type") != "RUN_FINISHED":
            pass
        return time.perf_counter() - began


async def until(lines: AsyncIterator[str], event_type: str) -> None:
    """Read as far as an event of this type."""
    async for line in lines:
        if f'"{event_type}"' in line:
            return
    raise SystemExit(f"the stream ended without {event_type}")


async def measure_cancels(name: str, way: Way, reading: RunningContestant, canceller: RunningContestant) -> None:
    """Measure one way and print its lines."""
    for what, (text, last) in SAYS.items():
        seconds = [await way(reading, canceller, text, last) for _ in range(ROUNDS)]
        median, most = statistics.median(seconds) * 1e3, max(seconds) * 1e3
        print(f"{name:<34} {what:<16} p50 {median:6.1f} ms   max {most:6.1f} ms")  # noqa: T201


def replica(store: str, bus: str) -> Contestant:
    """Return this container with the store and the bus that replicas share."""
    contestant = ours("assistant")
    settings = {**contestant.environment, "AGUI_STORE": store, "AGUI_BUS": bus, "AGUI_TOOLS": "bench.agents:TOOLS"}
    return replace(contestant, environment=settings)


async def main(arguments: Sequence[str]) -> None:
    """Measure each way."""
    store, bus = [*arguments, "memory", "memory"][:2] if len(arguments) != 1 else [arguments[0], "memory"]
    with running(replica(store, bus)) as (server,):
        await measure_cancels("SSE, cancelled by a route", over_sse, server, server)
        await measure_cancels("WebSocket, cancelled by a frame", over_ws, server, server)
    if store.startswith("postgresql"):
        with running(replica(store, bus), replica(store, bus)) as (reading, canceller):
            await measure_cancels("SSE, through another replica", over_sse, reading, canceller)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
