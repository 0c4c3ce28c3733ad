"""Runs on a live server over SSE and a WebSocket, whose events the official client checks.

Both give the same ``Turn``: over HTTP the client fetches for itself, over a WebSocket what was received is replayed
through the whole client.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from websockets.sync.client import ClientConnection

from tests.official.judge import Json, Judge, Turn
from tests.server.sockets.process import ServerProcess
from tests.websocket import blocking_receive, blocking_socket_to

TERMINAL = ("RUN_FINISHED", "RUN_ERROR")
NUMBERS = count(1)


@dataclass(frozen=True)
class Ask:
    """One run input, with ids of its own unless they are given.

    ``meanwhile`` is a body to send once so many events have come.
    """

    said: str
    thread: str = field(default_factory=lambda: f"thread-{next(NUMBERS)}")
    run: str = field(default_factory=lambda: f"run-{next(NUMBERS)}")
    tools: Sequence[Json] = ()
    forwarded: Mapping[str, object] = field(default_factory=dict)
    meanwhile: tuple[int, Json] | None = None

    @property
    def messages(self) -> list[Json]:
        return [{"id": f"{self.run}-user", "role": "user", "content": self.said}]


class ClientTransport(Protocol):
    def ask(self, ask: Ask) -> Turn:
        """Run the input and return the judge's verdict."""


@dataclass(frozen=True)
class Sse:
    judge: Judge
    server: ServerProcess

    def ask(self, ask: Ask) -> Turn:
        turn: Json = {"runId": ask.run, "tools": list(ask.tools), "forwardedProps": dict(ask.forwarded)}
        if ask.meanwhile:
            turn["meanwhile"] = {"after": ask.meanwhile[0], "body": ask.meanwhile[1]}
        agent = {"threadId": ask.thread, "initialMessages": ask.messages}
        return self.judge.run(self.server.invocations, [turn], **agent).turns[0]


@dataclass(frozen=True)
class WebSocket:
    judge: Judge
    server: ServerProcess

    def ask(self, ask: Ask) -> Turn:
        return self.judge.replay(self.events(ask)).turns[0]

    def events(self, ask: Ask) -> list[Json]:
        with blocking_socket_to(self.server.ws) as socket:
            body = {"threadId": ask.thread, "runId": ask.run, "messages": ask.messages, "tools": list(ask.tools)}
            body["protocolVersion"] = "1.0"
            socket.send(json.dumps({**body, "context": [], "state": {}, "forwardedProps": dict(ask.forwarded)}))
            return list(received(socket, ask.meanwhile))


def received(socket: ClientConnection, meanwhile: tuple[int, Json] | None) -> Iterable[Json]:
    after, body = meanwhile or (0, {})
    seen = 0
    while True:
        frame = blocking_receive(socket)
        if frame.get("control") == "pong":
            return
        if "control" in frame:
            assert frame["control"] == "result", frame
            continue
        yield frame
        seen += 1
        if seen == after:
            socket.send(json.dumps(body))
        if frame["type"] in TERMINAL:
            socket.send(json.dumps({"type": "ping"}))


def check(judge: Judge, turn: Turn) -> str:
    assert turn.error is None
    assert turn.failed is None
    assert turn.printed == []
    assert turn.types[0] == "RUN_STARTED"
    assert turn.types[-1] in TERMINAL
    assert sum(kind in TERMINAL for kind in turn.types) == 1
    check_frames(turn)
    verdict = judge.verify(turn.events, enforce=True, chunks=True)
    assert verdict.clean
    assert verdict.events == turn.events
    return turn.types[-1]


def check_frames(turn: Turn) -> None:
    """Over SSE: a plain stream, frames numbered from 1, and every event as the subscribers saw it."""
    if turn.wire["status"] is None:
        return
    assert turn.wire["status"] == 200
    assert turn.wire["headers"]["content-type"].startswith("text/event-stream")
    assert "\r" not in turn.wire["text"]
    assert [frame.seq for frame in turn.frames] == list(range(1, len(turn.frames) + 1))
    assert [frame.event for frame in turn.frames] == turn.events
