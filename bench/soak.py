"""A long run of everything that clients and agents do wrong, at a steady rate: ``python -m bench.soak``.

    PYTHONPATH=app python -m bench.soak                     15 minutes at 200 runs a second
    PYTHONPATH=app python -m bench.soak --seconds 60 --rate 100
    PYTHONPATH=app python -m bench.soak --store sqlite:////tmp/soak.db

Starts a server of its own on a free port. A run has 20 events. Most clients read it to its end, over SSE or over a
WebSocket. The others cancel, leave, stall in the middle of a request or send garbage, and some agents raise, raise
KeyboardInterrupt, block the event loop or ignore their cancellation. Once a minute the server is stopped (SIGSTOP) for
a second. Memory, open files and the runs that are open are printed every ten seconds, and at the end whether every
client got the answer that it must get, and whether anything is left open.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import websockets
from ag_ui.core import RunAgentInput

from bench.script import last_text

ROOT = Path(__file__).parents[1]

EVENTS = 20
"""Events of a run: RUN_STARTED, the start and the end of a message, RUN_FINISHED, and deltas between."""

STEP_SECONDS = 0.004
BLOCKED_SECONDS = 0.02
SAMPLE_SECONDS = 10.0
FREEZE_EVERY, FREEZE_SECONDS = 60.0, 1.0
ANSWER_SECONDS = 120.0
"""Longest wait for an answer. A machine that is busy with other work may take long."""

SETTLING_SECONDS = 40.0
"""Longest wait at the end until nothing is open."""


# --- the agent --------------------------------------------------------------------------------------------------------


async def agent(run_input: RunAgentInput) -> AsyncIterator[str]:
    """Yield a run of ``EVENTS`` events, or do what the last message says."""
    said = last_text(run_input)
    for number in range(EVENTS - 4):
        yield "hello world, "
        await asyncio.sleep(STEP_SECONDS)
        if number == 0 and said != "read":
            await MISDEEDS[said]()


async def wait_for_ever() -> None:
    """Wait until the run is cancelled."""
    await asyncio.Event().wait()


async def ignore_cancellation() -> None:
    """Wait, and continue for a while after the cancellation."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(BLOCKED_SECONDS)


async def block() -> None:
    """Block the event loop."""
    time.sleep(BLOCKED_SECONDS)  # noqa: ASYNC251 - that is the fault


async def fail() -> None:
    """Raise."""
    raise ValueError("an agent's mistake")


async def interrupt() -> None:
    """Raise what a signal raises elsewhere."""
    raise KeyboardInterrupt


MISDEEDS: dict[str, Callable[[], Awaitable[None]]] = {
    "wait": wait_for_ever,
    "ignore": ignore_cancellation,
    "block": block,
    "fail": fail,
    "interrupt": interrupt,
}


# --- clients ----------------------------------------------------------------------------------------------------------


def run_input(run: str, text: str) -> str:
    """Return the input of a run on a thread of its own."""
    message = {"id": "m", "role": "user", "content": text}
    return json.dumps({"threadId": run, "runId": run, "protocolVersion": "1.0", "messages": [message]})


def post(path: str, body: str) -> bytes:
    """Return a request."""
    data = body.encode()
    head = f"POST {path} HTTP/1.1\r\nHost: soak\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


class SoakExchange:
    """A connection with one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.received = b""

    @classmethod
    async def open(cls, port: int, request: bytes) -> "SoakExchange":
        """Connect and send the request."""
        exchange = cls(*await asyncio.open_connection("127.0.0.1", port))
        exchange._writer.write(request)
        return exchange

    async def until_text(self) -> None:
        """Read up to the first text."""
        while b"TEXT_MESSAGE_CONTENT" not in self.received:
            data = await self._reader.read(1 << 16)
            if not data:
                raise EOFError
            self.received += data

    async def rest(self) -> bytes:
        """Read to the end and close."""
        self.received += await self._reader.read()
        self.close()
        return self.received

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


def ending(body: bytes) -> str:
    """Return the end of a run: the number of events with the outcome, or the code of an error."""
    events = [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]
    return name_of(events)


def name_of(events: list[dict[str, object]]) -> str:
    """Return the end of a run by its events."""
    if not events:
        return "no event"
    last = events[-1]
    outcome = last.get("outcome")
    if last["type"] == "RUN_FINISHED" and isinstance(outcome, dict):
        return f"{len(events)} {outcome['type']}" if outcome["type"] == "success" else str(outcome["type"])
    return str(last.get("code", last["type"]))


async def read(port: int, run: str, text: str = "read") -> str:
    """Read a run to its end."""
    exchange = await SoakExchange.open(port, post("/invocations", run_input(run, text)))
    return ending(await exchange.rest())


async def read_socket(port: int, run: str) -> str:
    """Read a run to its end over a WebSocket."""
    async with websockets.connect(f"ws://127.0.0.1:{port}/ws", proxy=None, open_timeout=ANSWER_SECONDS) as socket:
        await socket.send(run_input(run, "read"))
        events = [json.loads(await socket.recv())]
        while events[-1]["type"] not in {"RUN_FINISHED", "RUN_ERROR"}:
            events.append(json.loads(await socket.recv()))
    return name_of(events).removeprefix(f"{len(events)} ")  # deltas may be merged


async def cancel(port: int, run: str, text: str = "wait") -> str:
    """Cancel a run from another connection, and read it to its end."""
    exchange = await SoakExchange.open(port, post("/invocations", run_input(run, text)))
    await exchange.until_text()
    await (await SoakExchange.open(port, post(f"/runs/{run}/cancel", ""))).rest()
    return ending(await exchange.rest())


async def leave(port: int, run: str) -> str:
    """Leave a run in its middle."""
    exchange = await SoakExchange.open(port, post("/invocations", run_input(run, "wait")))
    await exchange.until_text()
    exchange.close()
    return "left"


async def stall(port: int, run: str) -> str:
    """Send half of a request, and nothing for a second."""
    exchange = await SoakExchange.open(port, post("/invocations", run_input(run, "read"))[:-20])
    await asyncio.sleep(1)
    exchange.close()
    return "left"


async def garbage(port: int, run: str) -> str:
    """Send a body that is none."""
    noise = random.Random(run).randbytes(40).hex()  # noqa: S311 - not for secrets
    return ending(await (await SoakExchange.open(port, post("/invocations", "{" + noise))).rest())


@dataclass(frozen=True)
class SoakClient:
    """A kind of client: its share of all runs, and the answer that it must get."""

    name: str
    share: int
    expected: str
    act: Callable[[int, str], Awaitable[str]]


CLIENTS = (
    SoakClient("reads (SSE)", 68, f"{EVENTS} success", read),
    SoakClient("reads (WebSocket)", 10, "success", read_socket),
    SoakClient("cancels", 7, "cancelled", cancel),
    SoakClient("cancels an agent that ignores it", 1, "cancelled", lambda port, run: cancel(port, run, "ignore")),
    SoakClient("leaves", 6, "left", leave),
    SoakClient("stalls in its request", 2, "left", stall),
    SoakClient("sends garbage", 2, "VALIDATION_ERROR", garbage),
    SoakClient("agent raises", 2, "AGENT_ERROR", lambda port, run: read(port, run, "fail")),
    SoakClient("agent raises KeyboardInterrupt", 1, "AGENT_ERROR", lambda port, run: read(port, run, "interrupt")),
    SoakClient("agent blocks the loop", 1, f"{EVENTS} success", lambda port, run: read(port, run, "block")),
)


# --- the soak ---------------------------------------------------------------------------------------------------------


@dataclass
class Soak:
    """The clients of one server, and what they got.

    Attributes:
        port, pid: the server.
        rate: runs a second.
        most: clients at the same time. On a machine that is too busy for the rate, the next one begins later.
        answers: how often a kind of client got an answer.
        seconds: how long the clients have taken, which is longer than asked for on a machine that is too busy.
        samples: seconds, bytes of memory, open files and open runs.
        is_idle: True if the server had no open run at the end.
    """

    port: int
    pid: int
    rate: float
    most: int
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: float = 0.0
    samples: list[tuple[float, int, int, int]] = field(default_factory=list)
    is_idle: bool = False

    async def run(self, seconds: float) -> None:
        """Start clients at the rate, and watch the server. Return when all clients are done."""
        began, chosen = time.monotonic(), random.Random(1)  # noqa: S311 - not for secrets
        places = asyncio.Semaphore(self.most)
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(self._watch(began)), tasks.create_task(self._freeze())]
            async with asyncio.TaskGroup() as clients:
                number = 0
                while (elapsed := time.monotonic() - began) < seconds:
                    await asyncio.sleep(max(0.0, number / self.rate - elapsed))
                    await places.acquire()
                    client = chosen.choices(CLIENTS, [each.share for each in CLIENTS])[0]
                    task = clients.create_task(self._act(client, f"soak-{number}"))
                    task.add_done_callback(lambda _: places.release())
                    number += 1
            self.seconds = time.monotonic() - began
            for task in watching:
                task.cancel()
        await self._settle(began)

    async def _act(self, client: SoakClient, run: str) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await client.act(self.port, run)
        except (OSError, EOFError, TimeoutError, websockets.WebSocketException) as error:
            answer = type(error).__name__
        self.answers[client.name, answer] += 1

    async def _watch(self, began: float) -> None:
        while True:
            await self._sample(began)
            await asyncio.sleep(SAMPLE_SECONDS)

    async def _sample(self, began: float) -> None:
        status = Path(f"/proc/{self.pid}/status").read_text()  # noqa: ASYNC240 - a moment
        memory = re.search(r"VmRSS:\s+(\d+) kB", status)
        files = len(list(Path(f"/proc/{self.pid}/fd").iterdir()))  # noqa: ASYNC240 - as above
        sample = (time.monotonic() - began, int(memory[1]) * 1024 if memory else 0, files, await self._open_runs())
        self.samples.append(sample)
        seconds, size, files, runs = sample
        say(f"{seconds:5.0f} s  {size / 1e6:6.1f} MB  {files:4} files  {runs:4} open runs")

    async def _open_runs(self) -> int:
        request = b"GET /runs HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n"
        body = await (await SoakExchange.open(self.port, request)).rest()
        return body.count(b'"status":"running"') + body.count(b'"status":"queued"')

    async def _freeze(self) -> None:
        while True:
            await asyncio.sleep(FREEZE_EVERY)
            os.kill(self.pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(FREEZE_SECONDS)
            finally:
                os.kill(self.pid, signal.SIGCONT)

    async def _settle(self, began: float) -> None:
        """Wait until the server says that it is idle, for a limited time, and take the last sample."""
        end = time.monotonic() + SETTLING_SECONDS
        while not (is_idle := await self._is_idle()) and time.monotonic() < end:  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.5)
        await self._sample(began)
        self.is_idle = is_idle

    async def _is_idle(self) -> bool:
        request = b"GET /ping HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n"
        return b'"Healthy"' in await (await SoakExchange.open(self.port, request)).rest()

    def report(self) -> bool:
        """Print the result. Return True if every client got its answer and no run is open."""
        expected = {client.name: client.expected for client in CLIENTS}
        for (name, answer), count in sorted(self.answers.items()):
            say(f"{count:7}  {name}: {answer}{'' if answer == expected[name] else '   NOT EXPECTED'}")
        wrong = sum(count for (name, answer), count in self.answers.items() if answer != expected[name])
        half = self.samples[len(self.samples) // 2 :]
        sizes = [size / 1e6 for _, size, _, _ in half]
        count = self.answers.total()
        say(f"{count} runs in {self.seconds:.0f} s, {count / self.seconds:.0f} a second; {wrong} unexpected answers")
        say(f"memory in the second half: {min(sizes):.1f} to {max(sizes):.1f} MB; load {os.getloadavg()[2]:.1f}")
        say("no run is open" if self.is_idle else "A RUN IS STILL OPEN")
        return not wrong and self.is_idle


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the soak that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--rate", type=float, default=200.0, help="runs a second")
    parser.add_argument("--clients", type=int, default=200, help="most clients at the same time")
    parser.add_argument("--store", default="memory", help="AGUI_STORE")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="soak-") as folder, server(Path(folder, "log"), arguments.store) as (port, pid):
        soak = Soak(port, pid, arguments.rate, arguments.clients)
        asyncio.run(soak.run(arguments.seconds))
        is_good = soak.report()
        faults = [
            line
            for line in Path(folder, "log").read_text().splitlines()
            if re.search("Exception in|never retrieved", line)
        ]
    say(f"{len(faults)} faults of the server in its log")
    sys.exit(0 if is_good and not faults else 1)


@contextmanager
def server(log: Path, store: str) -> Iterator[tuple[int, int]]:
    """Run a server that logs into a file. Gives its port and its process id."""
    settings = {
        "AGUI_HOST": "127.0.0.1",
        "AGUI_PORT": "0",
        "AGUI_AGENT": "bench.soak:agent",
        "AGUI_ON_DISCONNECT": "cancel",
        "AGUI_SCOPE": "none",
        "AGUI_STORE": store,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'app'}",
    }
    command = (sys.executable, "-m", "agui_container", "serve")
    with log.open("w") as lines:
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | settings, stderr=lines)  # noqa: S603 - this project
    try:
        while (found := re.search(r"listening .*port=(\d+)", log.read_text())) is None and process.poll() is None:
            time.sleep(0.1)
        yield int(found[1]) if found else 0, process.pid
    finally:
        process.terminate()
        say(f"exit status after SIGTERM: {process.wait()}")


if __name__ == "__main__":
    main()
