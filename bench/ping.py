"""How long ``GET /ping`` takes while a tool blocks its thread for 2 s, again and again, and 50 runs stream.

    python bench/ping.py                 50 runs of 50 deltas a second each
    python bench/ping.py --full-speed    50 runs that stream as fast as they can: the worst case

Starts a server of its own on a free port. Readers are a process of their own, so that they do not slow the pings down.
Each ping is a new connection, as a health check's is, every 10 ms. The aim is p99 below 50 ms.
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
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

ROOT = Path(__file__).parents[1]
STREAMS = 50
WARM_SECONDS = 1.0
MEASURED_SECONDS = 6.0
INTERVAL = 0.01
ENOUGH = 1_000_000
"""Deltas of a run at full speed: more than it comes to."""


@contextmanager
def server() -> Iterator[int]:
    """A running server's port."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGUI_")}
    environment |= {"AGUI_HOST": "127.0.0.1", "AGUI_PORT": "0", "AGUI_AGENT": "bench.agents:agent"}
    environment |= {"AGUI_ON_DISCONNECT": "cancel", "PYTHONPATH": str(ROOT)}
    command = (sys.executable, "-m", "app", "serve")
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)  # noqa: S603
    try:
        lines = process.stderr or ()
        yield next(int(found[1]) for line in lines if (found := re.search(r"listening on .*:(\d+);", line)))
    finally:
        process.terminate()
        process.communicate(timeout=15)


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


async def load(port: int, text: str, ready: Event) -> None:
    """50 streams, and one run after another whose tool blocks, until this process is ended."""

    async def tools() -> None:
        for number in range(1000):
            await read(port, f"tool{number}", "call block {}")

    loop = asyncio.get_running_loop()
    loop.call_later(WARM_SECONDS, ready.set)
    await asyncio.gather(tools(), *(read(port, f"stream{number}", text) for number in range(STREAMS)))


def loaded(port: int, text: str, ready: Event) -> None:
    """The readers' process."""
    asyncio.run(load(port, text, ready))


def ping(port: int) -> tuple[float, str]:
    """Seconds, and the status."""
    begun = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/ping")
    status: str = json.loads(connection.getresponse().read())["status"]
    connection.close()
    return time.perf_counter() - begun, status


def measure(port: int) -> list[tuple[float, str]]:
    """Pings, one every ``INTERVAL``."""
    end = time.perf_counter() + MEASURED_SECONDS
    pings = []
    while time.perf_counter() < end:
        pings.append(ping(port))
        time.sleep(max(0.0, INTERVAL - pings[-1][0]))
    return pings


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full-speed", action="store_true", help="streams as fast as they can")
    full_speed = parser.parse_args().full_speed
    text = f"stream {ENOUGH}" if full_speed else f"paced {WARM_SECONDS + MEASURED_SECONDS + 5}"
    ready = multiprocessing.Event()
    with server() as port:
        readers = multiprocessing.Process(target=loaded, args=(port, text, ready), daemon=True)
        readers.start()
        try:
            ready.wait(30)
            pings = measure(port)
        finally:
            readers.kill()
            readers.join()
    times = sorted(seconds * 1000 for seconds, _ in pings)
    busy = sum(status == "HealthyBusy" for _, status in pings)
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    sys.stdout.write(
        f"{STREAMS} streams {'at full speed' if full_speed else 'paced'}, a tool blocking 2 s: "
        f"{len(times)} pings ({busy} busy), p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {times[-1]:.1f} ms\n"
    )


if __name__ == "__main__":
    main()
