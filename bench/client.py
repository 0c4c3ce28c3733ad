"""The measuring clients, which do as little work as possible for each byte, so that the server dominates the figures.

Rule: a client counts frames and looks for marks; it parses nothing. Nothing in JSON can look like what is counted.
"""

import json
import socket
import time
from dataclasses import dataclass
from itertools import count
from typing import Self

FRAME = b"\n\n"
END = b"\r\n0\r\n\r\n"
DELTA = b"TEXT_MESSAGE_CONTENT"
CHUNK = 1 << 18
SECONDS = 60.0
NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Result of one run: events, deltas among them, and the seconds to the first event, the first delta and the end."""

    events: int
    deltas: int
    first: float
    first_delta: float
    seconds: float


def run_body(text: str, thread: str = "", history: int = 0) -> bytes:
    """A run input that asks for ``text``, behind ``history`` messages; every run and thread is a new one."""
    run_id = f"run-{time.monotonic_ns()}-{next(NUMBERS)}"
    earlier = [
        {"id": f"h{number}", "role": ROLES[number % 2], "content": "What was said." * 4} for number in range(history)
    ]
    run_input = {
        "threadId": thread or f"thread of {run_id}",
        "runId": run_id,
        "messages": [*earlier, {"id": "m", "role": "user", "content": text}],
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
        "protocolVersion": "1.0",
    }
    return json.dumps(run_input).encode()


ROLES = ("user", "assistant")


def post(body: bytes) -> bytes:
    """The request for a run."""
    head = "POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get(path: str) -> bytes:
    """The request for anything else."""
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


class BlockingConnection:
    """One kept-alive connection with blocking reads."""

    def __init__(self, port: int, seconds: float = SECONDS) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> RunTiming:
        """Send, and read to the end."""
        began = time.perf_counter()
        self._socket.sendall(request)
        events = deltas = 0
        first = first_delta = 0.0
        tail = b""
        while not tail.endswith(END):
            data = self._socket.recv(CHUNK)
            if not data:
                raise ConnectionError("the server hung up")
            whole = tail + data
            events += whole.count(FRAME) - tail.count(FRAME)
            deltas += whole.count(DELTA) - tail.count(DELTA)
            first = first or (time.perf_counter() - began if events else 0.0)
            first_delta = first_delta or (time.perf_counter() - began if deltas else 0.0)
            tail = whole[-len(DELTA) - 1 :]
        return RunTiming(events, deltas, first, first_delta, time.perf_counter() - began)

    def run(self, text: str, history: int = 0) -> RunTiming:
        """One new run."""
        return self.ask(post(run_body(text, history=history)))
