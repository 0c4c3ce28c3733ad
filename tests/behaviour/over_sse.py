"""A client over HTTP and Server-Sent Events. It parses the frames itself, strictly: ``id`` and ``data``, LF LF."""

import json
import ssl
from collections.abc import AsyncIterator
from typing import Self

import httpx

from agui_container.engine.service import Service
from tests.behaviour.client import Client, Refused, RunStream
from tests.engine.doubles import WAIT, FakeClock, Json

TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Never used; made once because httpx makes one per client otherwise."""


def http_client(base_url: str, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
    """An HTTP client for one server on this machine."""
    return httpx.AsyncClient(base_url=base_url, headers=headers, timeout=WAIT, verify=TLS, trust_env=False)


async def frames(response: httpx.Response) -> AsyncIterator[tuple[int | None, Json]]:
    """Return the frames of a body, without comments."""
    buffer = b""
    async for piece in response.aiter_bytes():
        buffer += piece
        *whole, buffer = buffer.split(b"\n\n")
        for frame in whole:
            if not frame.startswith(b":"):
                yield parse_frame(frame)
    assert buffer == b""


def parse_frame(frame: bytes) -> tuple[int | None, Json]:
    """Parse one frame: its id, if it has one, and its event."""
    lines = frame.decode().split("\n")
    names, values = zip(*(line.split(": ", 1) for line in lines), strict=True)
    assert names in (("id", "data"), ("data",))
    return (int(values[0]) if len(values) > 1 else None), json.loads(values[-1])


class SseStream(RunStream):
    """The body of one response."""

    def __init__(self, service: Service, response: httpx.Response, http: httpx.AsyncClient) -> None:
        super().__init__(service)
        self.response = response
        self._http = http
        self._frames = frames(response)

    async def _receive(self) -> tuple[int, Json] | None:
        async for seq, event in self._frames:
            assert seq is not None
            return seq, event
        await self.close()
        return None

    async def close(self) -> None:
        await self.response.aclose()
        await self._http.aclose()


class OverSse(Client):
    """``POST /invocations``."""

    transport = "sse"

    def __init__(self, service: Service, clock: FakeClock, url: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(service, clock, headers)
        self.url = url

    def with_headers(self, **headers: str) -> Self:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        client = type(self)(self.service, self.clock, self.url, given)
        client.streams = self.streams
        return client

    async def start(self, body: Json | str) -> SseStream:
        http = http_client(self.url, self.headers)
        content = body if isinstance(body, str) else json.dumps(body)
        request = http.build_request("POST", "/invocations", content=content)
        response = await http.send(request, stream=True)
        stream = SseStream(self.service, response, http)
        self.streams.append(stream)
        if response.status_code != httpx.codes.OK:
            [(seq, event)] = [frame async for frame in frames(response)]
            assert (seq, event["type"]) == (None, "RUN_ERROR")
            retry_after = event["metadata"].get("retryAfter")
            assert response.headers.get("retry-after") == (None if retry_after is None else str(retry_after))
            raise Refused(event["code"], event["message"], event["metadata"]["requestId"], retry_after)
        return stream

    async def command(self, body: Json) -> Json:
        started, custom, finished = await self.run(body)
        assert (started["type"], finished["type"]) == ("RUN_STARTED", "RUN_FINISHED")
        assert custom["name"] == "command.result"
        value: Json = custom["value"]
        return value
