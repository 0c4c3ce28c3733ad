"""Polls of clients whose agent is silent are held, and not answered at once."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlencode

import httpx

from agui_container.transports.roboto.position import Position
from agui_container.transports.roboto.views import HOLD_SECONDS
from tests.engine.doubles import Json
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

CLIENTS = 200
AT_ONCE = 10
"""Clients that begin side by side. All of them together would measure how fast a server answers 200 at once."""

SECONDS = 8.0
"""Of watching: several polls of each client."""

BOUND = 300.0


@dataclass
class PollResult:
    """An answer to a poll.

    Attributes:
        asked_with: the position that the poll named.
        seconds: time that the poll took, as the client sees it.
    """

    asked_with: Position
    delta: Json
    seconds: float

    @property
    def position(self) -> Position:
        """The position that the answer names."""
        return Position.parse(self.delta["continuation_token"])

    @property
    def is_unchanged(self) -> bool:
        """True if the server had nothing to tell."""
        return self.position == self.asked_with

    @property
    def is_early(self) -> bool:
        """True if the server answered without a change, though the agent was at work and the poll could be held."""
        is_at_work = self.delta["status"] == "roboto_turn"
        return is_at_work and self.is_unchanged and self.seconds <= HOLD_SECONDS * 0.9


@dataclass
class PollingClient:
    """A client that polls one session as Roboto's package does, five times a second.

    Attributes:
        held: set while a poll waits behind the one with which the client has seen all there is.
    """

    port: int
    record: Json
    answers: list[PollResult] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)

    async def poll(self) -> None:
        """Poll until cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        token = self.record["continuation_token"]
        try:
            while True:
                sent = time.monotonic()
                query = urlencode({"next_token": token})
                path = f"/v1/ai/threads/{self.record['thread_id']}/delta?{query}"
                writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
                if self.has_all:
                    self.held.set()
                delta = await answer_of(reader)
                self.answers.append(PollResult(Position.parse(token), delta, time.monotonic() - sent))
                token = delta["continuation_token"]
                await asyncio.sleep(0.2)
        finally:
            writer.close()

    @property
    def has_all(self) -> bool:
        """True if the client has seen an answer without a change, or the last text before the agent's silence."""
        messages = [
            *self.record["messages"],
            *(it for row in self.answers for it in row.delta["messages_by_idx"].values()),
        ]
        return any(row.is_unchanged for row in self.answers) or any(map(is_last, messages))


def is_last(message: Json) -> bool:
    """True for the text after which the agent is silent."""
    return any(block.get("text", "").startswith("Waiting") for block in message["content"])


async def answer_of(reader: asyncio.StreamReader) -> Json:
    """Read a response. Gives the delta in it."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    assert head.startswith("http/1.1 200"), head
    size = int(head.partition("content-length:")[2].split("\r\n")[0])
    delta: Json = json.loads(await reader.readexactly(size))["data"]
    return delta


async def started(port: int, text: str) -> list[PollingClient]:
    """Clients with a session of their own each."""
    body = {"messages": [{"role": "user", "content": [{"text": text}]}]}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=BOUND) as http:
        return [
            PollingClient(port, (await http.post("/v1/ai/threads", json=body)).json()["data"]) for _ in range(CLIENTS)
        ]


def groups(clients: list[PollingClient]) -> Iterator[list[PollingClient]]:
    """Clients that begin side by side."""
    for at in range(0, len(clients), AT_ONCE):
        yield clients[at : at + AT_ONCE]


async def poll_idly(port: int, text: str) -> list[PollResult]:
    """Answers while every client waits behind all there is."""
    clients = await started(port, text)
    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as tasks:
        polls: list[asyncio.Task[None]] = []
        for group in groups(clients):
            polls += [tasks.create_task(client.poll()) for client in group]
            await asyncio.gather(*(client.held.wait() for client in group))
        await asyncio.sleep(SECONDS)
        for poll in polls:
            poll.cancel()
    return [answer for client in clients for answer in client.answers]


@requirement("roboto.idle")
async def test_polls_of_200_clients_are_held_while_their_agents_are_silent() -> None:
    with ServerProcess(AGUI_AGENT="assistant", AGUI_ROBOTO="on") as server:
        answers = await poll_idly(server.port, "wait 60")
    assert len(answers) >= CLIENTS
    assert [answer for answer in answers if answer.is_early] == []
