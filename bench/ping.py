"""Duration of ``GET /ping`` while a tool blocks its thread for 2 s, again and again, and 50 runs stream.

    python bench/ping.py                 50 runs of 50 deltas a second each
    python bench/ping.py --full-speed    50 runs that stream as fast as they can: the worst case
    python bench/ping.py --idle          no load: the cost of the machine itself
    python bench/ping.py --calls 300     one run after another that delegates 300 times 300 tasks

Starts a server of its own on a free port. Readers are a process of their own, so that they do not slow the pings down.
Each ping is a new connection, as a health check's is, every 10 ms. The aim is p99 below 50 ms, with ``--calls`` also
for the longest one. At the end the server gets SIGTERM while the load is still there; the time to its exit is printed.
"""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

ROOT = Path(__file__).parents[1]
STREAMS = 50
WARM_SECONDS = 1.0
MEASURED_SECONDS = 6.0
CALLS_SECONDS = 20.0
"""Measured with ``--calls``: the beginning and the middle of a run differ."""

INTERVAL = 0.01
PING_SECONDS = 120.0
EXIT_SECONDS = 60.0
ENOUGH = 1_000_000
"""Deltas of a run at full speed: more than it comes to."""


@dataclass(frozen=True, slots=True)
class Load:
    """One load of the server.

    Attributes:
        title: for the line that is printed.
        agent: AGUI_AGENT.
        streams: requests that are sent at once, each one time.
        repeated: a request that is sent again and again, each time when the one before has ended.
        seconds: how long pings are sent.
    """

    title: str
    agent: str = "bench.agents:agent"
    streams: tuple[str, ...] = ()
    repeated: str = ""
    seconds: float = MEASURED_SECONDS


def load_of(arguments: argparse.Namespace) -> Load:
    """The load that the command line names."""
    if arguments.idle:
        return Load("no load")
    if arguments.calls:
        count: int = arguments.calls
        title = f"a run that delegates {count} times {count} tasks"
        return Load(title, "assistant", repeated=nested_calls(count), seconds=CALLS_SECONDS)
    text = f"stream {ENOUGH}" if arguments.full_speed else f"paced {WARM_SECONDS + MEASURED_SECONDS + 5}"
    title = f"{STREAMS} streams {'at full speed' if arguments.full_speed else 'paced'}, a tool blocking 2 s"
    return Load(title, streams=(text,) * STREAMS, repeated="call block {}")


def nested_calls(count: int) -> str:
    """A message by which the offline model delegates ``count`` tasks, each of which delegates ``count`` again."""
    inner = "\n".join([delegation("calculate 1+1")] * count)
    return "\n".join([delegation(inner)] * count)


def delegation(task: str) -> str:
    """The line that makes the offline model call ``delegate``."""
    return f"call delegate {json.dumps({'task': task})}"


@contextmanager
def server(agent: str, **settings: str) -> Iterator[int]:
    """A running server's port. Its end tells how long SIGTERM took."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    environment |= {"AGUI_HOST": "127.0.0.1", "AGUI_PORT": "0", "AGUI_AGENT": agent}
    environment |= settings
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = (sys.executable, "-m", "agui_container", "serve")
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)  # noqa: S603
    lines = iter(process.stderr or ())
    try:
        port = next(int(found[1]) for line in lines if (found := re.search(r"listening .*port=(\d+)$", line)))
        threading.Thread(target=deque, args=(lines, 0), daemon=True).start()  # a full pipe would hold up the server
        yield port
    finally:
        began = time.perf_counter()
        process.terminate()
        process.wait(timeout=EXIT_SECONDS)
        sys.stdout.write(f"SIGTERM to exit: {time.perf_counter() - began:.2f} s, status {process.returncode}\n")


async def read(port: int, run_id: str, text: str) -> None:
    """Start a run and read it to its end."""
    message = {"id": "m", "role": "user", "content": text}
    body = json.dumps({"threadId": run_id, "runId": run_id, "messages": [message]}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /invocations HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    writer.write(body)
    while await reader.read(1 << 16):
        pass
    writer.close()


async def send(port: int, load: Load, ready: Event) -> None:
    """Send the load, until this process is ended."""

    async def repeat() -> None:
        for number in range(1000):
            await read(port, f"repeated{number}", load.repeated)

    loop = asyncio.get_running_loop()
    loop.call_later(WARM_SECONDS, ready.set)
    repeated = [repeat()] if load.repeated else []
    with suppress(OSError):  # the server has ended
        streams = (read(port, f"stream{number}", text) for number, text in enumerate(load.streams))
        await asyncio.gather(*repeated, *streams)
    await asyncio.sleep(WARM_SECONDS)


def run_load(port: int, load: Load, ready: Event) -> None:
    """Run the load in the process of the readers."""
    asyncio.run(send(port, load, ready))


def ping(port: int) -> tuple[float, str]:
    """Seconds, and the status."""
    begun = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PING_SECONDS)
    connection.request("GET", "/ping")
    status: str = json.loads(connection.getresponse().read())["status"]
    connection.close()
    return time.perf_counter() - begun, status


def measure(port: int, seconds: float) -> list[tuple[float, str]]:
    """Pings, one every ``INTERVAL``."""
    end = time.perf_counter() + seconds
    pings = []
    while time.perf_counter() < end:
        pings.append(ping(port))
        time.sleep(max(0.0, INTERVAL - pings[-1][0]))
    return pings


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--full-speed", action="store_true", help="streams as fast as they can")
    kinds.add_argument("--idle", action="store_true", help="no load")
    kinds.add_argument("--calls", type=int, default=0, metavar="N", help="N calls of a subagent that makes N calls")
    load = load_of(parser.parse_args())
    ready = multiprocessing.Event()
    readers: multiprocessing.Process | None = None
    try:
        with server(load.agent, AGUI_ON_DISCONNECT="cancel") as port:
            readers = multiprocessing.Process(target=run_load, args=(port, load, ready), daemon=True)
            readers.start()
            ready.wait(30)
            report(load, measure(port, load.seconds))
    finally:
        if readers is not None:
            readers.kill()
            readers.join()


def report(load: Load, pings: list[tuple[float, str]]) -> None:
    """Print one line."""
    times = sorted(seconds * 1000 for seconds, _ in pings)
    busy = sum(status == "HealthyBusy" for _, status in pings)
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    sys.stdout.write(
        f"{load.title}: {len(times)} pings ({busy} busy), p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {times[-1]:.1f} ms\n"
    )


if __name__ == "__main__":
    main()
