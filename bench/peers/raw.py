"""Plain ASGI that reads the wish and sends bytes encoded beforehand, one send per event: no work but the server's.

What a framework adds to this is its own cost; what sends several events in one write can be cheaper.
"""

import json

from ag_ui.encoder import EventEncoder
from starlette.types import Receive, Scope, Send

from bench.script import made

HEADERS = [(b"content-type", b"text/event-stream")]
ENCODER = EventEncoder()


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one POST with as many deltas as it asks for."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    count = int(json.loads(body)["messages"][-1]["content"].split()[1])
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    for frame in frames(count):
        await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def frames(count: int) -> list[bytes]:
    """The frames of a run, made once."""
    if count not in KNOWN:
        KNOWN[count] = [ENCODER.encode(event).encode() for event in made(count)]
    return KNOWN[count]


KNOWN: dict[int, list[bytes]] = {}
