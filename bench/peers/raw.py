"""Plain ASGI that reads the request and sends bytes encoded beforehand, one send per event: the cost of uvicorn alone.

A framework's cost comes on top of this. A server that sends several events in one write can be cheaper. In a paced
event only the time is written into the bytes, so the figure is the cost of such an event without any protocol.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator

from ag_ui.core import TextMessageContentEvent
from ag_ui.encoder import EventEncoder
from starlette.types import Receive, Scope, Send

from bench.agents import MESSAGE, text_events

HEADERS = [(b"content-type", b"text/event-stream")]
ENCODER = EventEncoder()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one POST with as many deltas as it asks for."""
    if scope["type"] != "http":
        return
    kind, count, *seconds = json.loads(await read(receive))["messages"][-1]["content"].split()
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    if kind == "paced":
        async for frame in paced(int(count), float(*seconds)):
            await send({"type": "http.response.body", "body": frame, "more_body": True})
    else:
        for frame in frames(int(count)):
            await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def read(receive: Receive) -> bytes:
    """A request's body."""
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def frames(count: int) -> list[bytes]:
    """The frames of a run, made once."""
    if count not in KNOWN:
        KNOWN[count] = [ENCODER.encode(event).encode() for event in text_events(count)]
    return KNOWN[count]


KNOWN: dict[int, list[bytes]] = {}


async def paced(count: int, seconds: float) -> AsyncIterator[bytes]:
    """Frames that say when they were sent, as those of ``script.paced`` do; the first and the last are left out."""
    stamped = ENCODER.encode(TextMessageContentEvent(message_id=MESSAGE, delta="at %d")).encode()
    for _ in range(count):
        yield stamped % time.monotonic_ns()
        await asyncio.sleep(seconds)
