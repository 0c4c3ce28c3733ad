"""A soak: a server that is kept busy with runs of twenty events, some of whose clients and agents misbehave.

A fifth of the clients cancel, leave, stall or send garbage, or meet an agent that raises, blocks the loop or ignores
its cancellation. Once a minute the process is stopped for a second. The soak fails if a client gets another answer than
it must get, or if a run is open at the end.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from ag_ui.core import RunAgentInput

from bench.agents import last_text
from bench.client import post, run_body
from bench.servers import RunningServer, ours

DELTAS, STEP_SECONDS, BLOCKED_SECONDS = 16, 0.004, 0.02
FREEZE_EVERY, FREEZE_SECONDS, SAMPLE_SECONDS = 60.0, 1.0, 10.0
ANSWER_SECONDS = 120.0
"""Longest wait for an answer. A machine that is busy with other work may take long."""


async def agent(run_input: RunAgentInput) -> AsyncIterator[str]:
    """Yield a run, and do what the last message says after its first delta."""
    said = last_text(run_input)
    for number in range(DELTAS):
        yield "hello world, "
        await asyncio.sleep(STEP_SECONDS)
        if number == 0:
            await misbehave(said)


async def misbehave(said: str) -> None:
    """Do what agents should not do."""
    if said == "fail":
        raise ValueError("an agent's mistake")
    if said == "block":
        time.sleep(BLOCKED_SECONDS)  # noqa: ASYNC251 - that is the fault
    if said in {"wait", "ignore"}:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if said == "wait":
                raise
            await asyncio.sleep(BLOCKED_SECONDS)


class Exchange:
    """A connection with one request, which is read to its end unless the client leaves."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._received = b""

    @classmethod
    async def open(cls, port: int, request: bytes) -> "Exchange":
        """Connect and send the request."""
        exchange = cls(*await asyncio.open_connection("127.0.0.1", port))
        exchange._writer.write(request.replace(b"Host: x\r\n", b"Host: x\r\nConnection: close\r\n"))
        return exchange

    async def until_text(self) -> None:
        """Read up to the first text."""
        while b"TEXT_MESSAGE_CONTENT" not in self._received:
            data = await self._reader.read(1 << 16)
            if not data:
                raise EOFError
            self._received += data

    async def end(self) -> str:
        """Read to the end, and return how the run ended: its outcome, or the code of an error."""
        self._received += await self._reader.read()
        self.close()
        frames = [line[6:] for line in self._received.split(b"\n") if line.startswith(b"data: ")]
        if not frames:
            return "no event"
        last = json.loads(frames[-1])
        return str(last["outcome"]["type"] if "outcome" in last else last.get("code"))

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


async def read(port: int, run_id: str, text: str = "read") -> str:
    """Read a run to its end."""
    return await (await Exchange.open(port, post(run_body(text, run_id)))).end()


async def cancel(port: int, run_id: str, text: str = "wait") -> str:
    """Cancel a run from another connection, and read it to its end."""
    exchange = await Exchange.open(port, post(run_body(text, run_id)))
    await exchange.until_text()
    await (await Exchange.open(port, post(b"", f"/runs/{run_id}/cancel"))).end()
    return await exchange.end()


async def leave(port: int, run_id: str) -> str:
    """Leave a run in its middle."""
    exchange = await Exchange.open(port, post(run_body("wait", run_id)))
    await exchange.until_text()
    exchange.close()
    return "left"


async def stall(port: int, run_id: str) -> str:
    """Send half of a request, and nothing for a second."""
    exchange = await Exchange.open(port, post(run_body("read", run_id))[:-20])
    await asyncio.sleep(1)
    exchange.close()
    return "left"


async def garbage(port: int, run_id: str) -> str:
    """Send a body that is none."""
    return await (await Exchange.open(port, post(f"{{{run_id}".encode()))).end()


@dataclass(frozen=True, slots=True)
class SoakClient:
    """A kind of client: its share of all runs, and the answer that it must get."""

    name: str
    share: int
    expected: str
    act: Callable[[int, str], Awaitable[str]]


CLIENTS = (
    SoakClient("reads", 78, "success", read),
    SoakClient("cancels", 7, "cancelled", cancel),
    SoakClient("cancels an agent that ignores it", 1, "cancelled", lambda port, run_id: cancel(port, run_id, "ignore")),
    SoakClient("leaves", 6, "left", leave),
    SoakClient("stalls in its request", 2, "left", stall),
    SoakClient("sends garbage", 2, "VALIDATION_ERROR", garbage),
    SoakClient("agent raises", 2, "AGENT_ERROR", lambda port, run_id: read(port, run_id, "fail")),
    SoakClient("agent blocks the loop", 2, "success", lambda port, run_id: read(port, run_id, "block")),
)


@dataclass
class Soak:
    """The clients of one server, and what they got.

    Attributes:
        rate: runs a second.
        samples: seconds, bytes of memory and open files.
    """

    server: RunningServer
    rate: float
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    samples: list[tuple[float, int, int]] = field(default_factory=list)

    async def run(self, seconds: float) -> None:
        """Start clients at the rate, and watch the server. Return when all clients are done."""
        began, chosen, number = time.monotonic(), random.Random(1), 0  # noqa: S311 - not for secrets
        places = asyncio.Semaphore(int(self.rate))
        watching = [asyncio.create_task(self._watch(began)), asyncio.create_task(self._freeze())]
        async with asyncio.TaskGroup() as clients:
            while (elapsed := time.monotonic() - began) < seconds:
                await asyncio.sleep(max(0.0, number / self.rate - elapsed))
                await places.acquire()
                client = chosen.choices(CLIENTS, [each.share for each in CLIENTS])[0]
                task = clients.create_task(self._act(client, f"soak-{number}"))
                task.add_done_callback(lambda _: places.release())
                number += 1
        for task in watching:
            task.cancel()
        self._sample(began)

    async def _act(self, client: SoakClient, run_id: str) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await client.act(self.server.port, run_id)
        except (OSError, EOFError, TimeoutError) as error:
            answer = type(error).__name__
        self.answers[client.name, answer] += 1

    async def _watch(self, began: float) -> None:
        while True:
            self._sample(began)
            await asyncio.sleep(SAMPLE_SECONDS)

    def _sample(self, began: float) -> None:
        sample = (time.monotonic() - began, self.server.memory(), self.server.open_files())
        self.samples.append(sample)
        sys.stderr.write(f"{sample[0]:5.0f} s  {sample[1] / 1e6:6.1f} MB  {sample[2]:4} files\n")

    async def _freeze(self) -> None:
        while True:
            await asyncio.sleep(FREEZE_EVERY)
            os.kill(self.server.pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(FREEZE_SECONDS)
            finally:
                os.kill(self.server.pid, signal.SIGCONT)

    def wrong(self) -> int:
        """Return the number of answers that a client must not get."""
        expected = {client.name: client.expected for client in CLIENTS}
        return sum(count for (name, answer), count in self.answers.items() if answer != expected[name])


def soak(seconds: float, rate: float, store: str) -> tuple[list[tuple[str, str]], bool]:
    """Soak a server. Return what was measured, and True if nothing was wrong."""
    settings = {"AGUI_ON_DISCONNECT": "cancel", "AGUI_SCOPE": "none", "AGUI_STORE": store}
    with RunningServer(ours("bench.soak:agent", settings=settings)) as server:
        soaked = Soak(server, rate)
        asyncio.run(soaked.run(seconds))
        deadline = time.monotonic() + FREEZE_EVERY
        while not (is_idle := server.is_idle()) and time.monotonic() < deadline:
            time.sleep(0.5)
        status = server.terminate()
    half = [size / 1e6 for _, size, _ in soaked.samples[len(soaked.samples) // 2 :]]
    lines = [
        ("runs", f"{soaked.answers.total():,} in {soaked.samples[-1][0]:.0f} s"),
        ("answers that a client must not get", str(soaked.wrong())),
        ("runs open at the end", "none" if is_idle else "some"),
        ("memory in the second half", f"{min(half):.0f} to {max(half):.0f} MB"),
        ("most open files", str(max(files for _, _, files in soaked.samples))),
        ("exit status after SIGTERM", str(status)),
    ]
    return lines, is_idle and not soaked.wrong() and not status
