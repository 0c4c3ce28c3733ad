"""Whole HTTP answers of a server, and the error in a refusal."""

import json
from collections.abc import AsyncIterator

import httpx
from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item
from tests.behaviour.over_sse import OverSse
from tests.engine.doubles import Json
from tests.sse import frames_of, http_client


async def brief(_: RunAgentInput) -> AsyncIterator[Item]:
    yield CustomEvent(name="n", value="\u2028 é\n")


async def post(client: OverSse, body: Json | bytes, headers: dict[str, str] | None = None) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with http_client(client.url) as http:
        return await http.post("/invocations", content=content, headers=headers)


async def get(client: OverSse, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    async with http_client(client.url) as http:
        return await http.get(path, headers=headers)


def refusal_event(response: httpx.Response) -> Json:
    assert response.headers["content-type"].startswith("text/event-stream")
    [frame] = frames_of(response.content)
    assert (frame.seq, frame.event["type"]) == (None, "RUN_ERROR")
    return frame.event
