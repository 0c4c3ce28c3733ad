"""Readers that keep every byte of a run, over SSE and over WebSocket, and can be cut anywhere.

Rule: what is kept is what came, so two readers are compared byte by byte, whatever carried it to them.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from websockets.exceptions import ConnectionClosed

from tests.engine.doubles import Json
from tests.server.sockets.client import PATIENCE, HttpExchange, is_last, is_text, request
from tests.sse import take_frames
from tests.websocket import socket_to

CUT = (OSError, EOFError, ConnectionClosed)
"""Errors of a reader whose server has been killed."""


class Piece(NamedTuple):
    """One received unit: an event, or adjacent deltas as one WebSocket frame.

    ``seq`` is the number of its last event; ``is_frame`` says that it came over a socket, with that number in it.
    """

    seq: int
    data: bytes
    is_frame: bool = False

    @property
    def is_last(self) -> bool:
        return is_last(json.loads(self.data))


Pieces = AsyncGenerator[Piece, None]


async def over_sse(port: int, sent: bytes, *, window: int | None = None) -> Pieces:
    exchange = await HttpExchange.open(port, sent, window=window)
    rest = b""
    try:
        async with aclosing(exchange.body()) as bodies:
            async for body in bodies:
                frames, rest = take_frames(rest + body)
                for frame in frames:
                    assert frame.seq is not None
                    yield Piece(frame.seq, frame.data)
    finally:
        await exchange.close()


async def over_ws(port: int, asked: Json) -> Pieces:
    async with socket_to(port, "/ws?cursor=1") as connection:
        await connection.send(json.dumps(asked))
        while True:
            async with asyncio.timeout(PATIENCE):
                text = await connection.recv(decode=True)
            frame = json.loads(text)
            if "control" in frame:
                assert frame["control"] == "result", frame
                continue
            yield Piece(frame["metadata"]["seq"], text.encode(), is_frame=True)
            if is_last(frame):
                return


Transport = Callable[[int, str, str, int], Pieces]
"""Reads on: port, thread, run, and the number of the last event that was seen."""


def by_after(port: int, thread: str, run: str, after: int) -> Pieces:
    return over_sse(port, request("GET", f"/runs/{run}/events?threadId={thread}&after={after}"))


def by_attach(port: int, thread: str, run: str, after: int) -> Pieces:
    return over_ws(port, {"command": {"type": "attach", "threadId": thread, "runId": run, "after": after}})


async def all_of(pieces: Pieces) -> list[Piece]:
    async with aclosing(pieces) as reading:
        return [piece async for piece in reading]


class Reading:
    """A reader in a task of its own."""

    def __init__(self, pieces: Pieces) -> None:
        self._live = asyncio.Event()
        self._task = asyncio.create_task(self._read(pieces))

    async def _read(self, pieces: Pieces) -> list[Piece]:
        seen = []
        async with aclosing(pieces):
            async for piece in pieces:
                seen.append(piece)
                if is_text(json.loads(piece.data)):
                    self._live.set()
        return seen

    async def whole(self) -> list[Piece]:
        return await self._task

    @classmethod
    async def live(cls, pieces: Pieces) -> "Reading":
        """A reader that has seen text, and waits for more."""
        reading = cls(pieces)
        waiting = asyncio.create_task(reading._live.wait())
        await asyncio.wait([waiting, reading._task], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        assert not reading._task.done()
        return reading


def as_shown(whole: Sequence[bytes], pieces: Sequence[Piece], after: int = 0) -> list[bytes]:
    """Return the data that pieces with these ends must have to be together the run after ``after``."""
    shown = []
    for piece in pieces:
        events = whole[after : piece.seq]
        shown.append(frame_of_events(events, piece.seq) if piece.is_frame else b"".join(events))
        after = piece.seq
    return shown


def frame_of_events(events: Sequence[bytes], seq: int) -> bytes:
    first, *others = [json.loads(event) for event in events]
    for other in others:
        assert other | {"delta": ""} == first | {"delta": ""}
    delta = {"delta": "".join(event["delta"] for event in (first, *others))} if others else {}
    metadata = first.get("metadata", {}) | {"seq": seq}
    return json.dumps(first | delta | {"metadata": metadata}, ensure_ascii=False, separators=(",", ":")).encode()
