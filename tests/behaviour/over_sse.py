"""A client over HTTP and Server-Sent Events."""

import json

import httpx

from agui_container.engine.engine import Engine
from tests.behaviour.client import Client, Refused, RunStream
from tests.engine.doubles import FakeClock, Json
from tests.sse import http_client, stream_frames


class SseStream(RunStream):
    def __init__(self, service: Engine, response: httpx.Response, http: httpx.AsyncClient) -> None:
        super().__init__(service)
        self.response = response
        self._http = http
        self._frames = stream_frames(response)

    async def _receive(self) -> tuple[int, Json] | None:
        async for frame in self._frames:
            assert frame.seq is not None
            return frame.seq, frame.event
        await self.close()
        return None

    async def close(self) -> None:
        await self.response.aclose()
        await self._http.aclose()


class OverSse(Client):
    transport = "sse"

    def __init__(self, service: Engine, clock: FakeClock, url: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(service, clock, headers)
        self.url = url

    async def start(self, body: Json | str) -> SseStream:
        http = http_client(self.url, self.headers)
        content = body if isinstance(body, str) else json.dumps(body)
        request = http.build_request("POST", "/invocations", content=content)
        response = await http.send(request, stream=True)
        stream = SseStream(self.service, response, http)
        self.streams.append(stream)
        if response.status_code != httpx.codes.OK:
            [refusal] = [frame async for frame in stream_frames(response)]
            event = refusal.event
            assert (refusal.seq, event["type"]) == (None, "RUN_ERROR")
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
