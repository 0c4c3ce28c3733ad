"""The measuring clients, which do as little work as possible for each byte, so that the server dominates the figures.

Rule: a client counts frames and looks for marks; it parses nothing. Nothing in JSON can look like what is counted.
"""

import asyncio
import json
import re
import socket
import time
from array import array
from itertools import count
from typing import Self, cast

FRAME = b"\n\n"
END = b"\r\n0\r\n\r\n"
DELTA = b"TEXT_MESSAGE_CONTENT"
CHUNK = 1 << 18
SECONDS = 60.0
NUMBERS = count(1)
STAMP = re.compile(rb'"at (\d+)"')
LONGEST_STAMP = 40
"""Bytes of a stamp with its quotes, which two reads may share."""


def run_body(text: str, run_id: str = "") -> bytes:
    """Return a run input that asks for ``text``; every run and thread is a new one."""
    name = run_id or f"run-{time.monotonic_ns()}-{next(NUMBERS)}"
    run_input = {
        "threadId": f"thread of {name}",
        "runId": name,
        "messages": [{"id": "m", "role": "user", "content": text}],
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": {},
        "protocolVersion": "1.0",
    }
    return json.dumps(run_input).encode()


def post(body: bytes, path: str = "/invocations") -> bytes:
    """Return the request for a run."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class BlockingConnection:
    """One kept-alive connection with blocking reads."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def run(self, text: str) -> int:
        """Ask for one new run, read it to its end, and return its number of deltas."""
        self._socket.sendall(post(run_body(text)))
        deltas, tail = 0, b""
        while not tail.endswith(END):
            data = self._socket.recv(CHUNK)
            if not data:
                raise ConnectionError("the server hung up")
            whole = tail + data
            deltas += whole.count(DELTA) - tail.count(DELTA)
            tail = whole[-len(DELTA) - 1 :]
        return deltas


class Watch:
    """Deltas and delays of all streams of one measurement."""

    def __init__(self) -> None:
        self.deltas = 0
        self.delays = array("q")


class MeasuredStream(asyncio.Protocol):
    """One request whose deltas are counted, and timed by their stamps. Data is timed on arrival, before other work."""

    def __init__(self, request: bytes, watch: Watch) -> None:
        self._request = request
        self._watch = watch
        self._stamps = b""
        self._marks = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        cast("asyncio.Transport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        """Count, and time."""
        now, position = time.monotonic_ns(), 0
        whole = self._stamps + data
        for found in STAMP.finditer(whole):
            self._watch.delays.append(now - int(found[1]))
            position = found.end()
        self._stamps = whole[max(position, len(whole) - LONGEST_STAMP) :]
        marks = self._marks + data
        self._watch.deltas += marks.count(DELTA)
        self._marks = marks[-len(DELTA) + 1 :]


class StreamGroup:
    """Streams to one server, without a task for each."""

    def __init__(self, port: int) -> None:
        self.watch = Watch()
        self._port = port
        self._transports: list[asyncio.BaseTransport] = []

    async def open(self, streams: int, text: str, over: float) -> None:
        """Start new runs within ``over`` seconds."""
        loop = asyncio.get_running_loop()
        for _ in range(streams):
            request = post(run_body(text))
            made = await loop.create_connection(
                lambda request=request: MeasuredStream(request, self.watch),  # type: ignore[misc]
                "127.0.0.1",
                self._port,
            )
            self._transports.append(made[0])
            await asyncio.sleep(over / streams)

    def close(self) -> None:
        """Hang up."""
        for transport in self._transports:
            transport.close()
