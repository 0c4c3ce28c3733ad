"""The driver of SSE: an HTTP client of a server on this machine, and the frames of a body.

Rule: frames are parsed strictly. A frame is a comment, or ``id`` and ``data``, or ``data`` alone; it ends in LF LF, and
nothing follows the last one.
"""

import json
import ssl
from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx

from tests.engine.doubles import WAIT, Json

TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Never used; made once because httpx makes one per client otherwise."""


class SseFrame(NamedTuple):
    seq: int | None
    data: bytes

    @property
    def event(self) -> Json:
        found: Json = json.loads(self.data)
        return found


def http_client(base_url: str, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=base_url, headers=headers, timeout=WAIT, verify=TLS, trust_env=False)


def parse_frame(frame: bytes) -> SseFrame:
    names, values = zip(*(line.split(b": ", 1) for line in frame.split(b"\n")), strict=True)
    assert names in ((b"id", b"data"), (b"data",))
    return SseFrame(int(values[0]) if len(values) > 1 else None, values[-1])


def take_frames(received: bytes) -> tuple[list[SseFrame], bytes]:
    *frames, rest = received.split(b"\n\n")
    return [parse_frame(frame) for frame in frames if not frame.startswith(b":")], rest


def frames_of(body: bytes) -> list[SseFrame]:
    frames, rest = take_frames(body)
    assert rest == b""
    return frames


def events_of(body: bytes) -> list[Json]:
    return [frame.event for frame in frames_of(body)]


async def stream_frames(response: httpx.Response) -> AsyncIterator[SseFrame]:
    rest = b""
    async for piece in response.aiter_bytes():
        frames, rest = take_frames(rest + piece)
        for frame in frames:
            yield frame
    assert rest == b""
