"""Runs on a live server over SSE, protobuf and a WebSocket, whose events the official client checks.

All give the same ``Turn``: over HTTP the client fetches for itself, over a WebSocket what was received is replayed
through the whole client.
"""

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar, Protocol

from websockets.sync.client import ClientConnection

from agui_container.transports.formats import PROTOBUF
from tests.official.judge import Json, Judge, Turn
from tests.protocol.protobuf_decoder import kind, messages
from tests.sockets.process import ServerProcess
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
        """Return the user's text."""
        return [{"id": f"{self.run}-user", "role": "user", "content": self.said}]


class ClientTransport(Protocol):
    """A transport that a client can use."""

    def ask(self, ask: Ask) -> Turn:
        """Run the input and return the judge's verdict."""


@dataclass(frozen=True)
class Sse:
    """POST /invocations by the client itself."""

    judge: Judge
    server: ServerProcess
    binary: ClassVar[bool] = False

    def ask(self, ask: Ask) -> Turn:
        """Run the input and return the judge's verdict."""
        turn: Json = {"runId": ask.run, "tools": list(ask.tools), "forwardedProps": dict(ask.forwarded)}
        if ask.meanwhile:
            turn["meanwhile"] = {"after": ask.meanwhile[0], "body": ask.meanwhile[1]}
        agent = {"threadId": ask.thread, "initialMessages": ask.messages, "binary": self.binary}
        return self.judge.run(self.server.invocations, [turn], **agent).turns[0]


@dataclass(frozen=True)
class Protobuf(Sse):
    """The same by a client that accepts protobuf."""

    binary: ClassVar[bool] = True


@dataclass(frozen=True)
class WebSocket:
    """One connection per run; its events are replayed through the client."""

    judge: Judge
    server: ServerProcess

    def ask(self, ask: Ask) -> Turn:
        """Run the input and return the judge's verdict."""
        return self.judge.replay(self.events(ask)).turns[0]

    def events(self, ask: Ask) -> list[Json]:
        """One run, as it came; for several threads at once."""
        with blocking_socket_to(self.server.ws) as socket:
            socket.send(
                json.dumps(
                    {
                        "threadId": ask.thread,
                        "runId": ask.run,
                        "messages": ask.messages,
                        "tools": list(ask.tools),
                        "context": [],
                        "state": {},
                        "forwardedProps": dict(ask.forwarded),
                    }
                )
            )
            return list(received(socket, ask.meanwhile))


def received(socket: ClientConnection, meanwhile: tuple[int, Json] | None) -> Iterable[Json]:
    """The events of one run, and whatever comes after its end until the server answers a ping."""
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
    """Check the rules that hold for every run, whatever the agent did. Return the type of its last event."""
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
    if turn.wire["headers"]["content-type"] == PROTOBUF:
        body = b"".join(b64decode(piece) for piece in turn.wire["text"].split())
        assert [kind(message) for message in messages(body)] == turn.types
        return
    assert turn.wire["headers"]["content-type"].startswith("text/event-stream")
    assert "\r" not in turn.wire["text"]
    assert [frame.seq for frame in turn.frames] == list(range(1, len(turn.frames) + 1))
    assert [frame.event for frame in turn.frames] == turn.events
