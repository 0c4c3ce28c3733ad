"""Polls that wait while the server stops."""

import asyncio
import json

import httpx
import pytest

from agui_container.web.caller_middleware import SESSION_HEADER
from tests.engine.doubles import Json
from tests.server.sockets.process import ServerProcess

pytestmark = pytest.mark.wire

THREADS = "/v1/ai/threads"
BOUND = 300.0


async def poll(http: httpx.AsyncClient, delta: Json) -> httpx.Response:
    token = {"next_token": delta["continuation_token"]}
    return await http.get(f"{THREADS}/{delta['thread_id']}/delta", params=token)


async def started(http: httpx.AsyncClient, text: str) -> Json:
    """Begin a session, and return the delta with the last text before the agent's silence."""
    body = {"messages": [{"role": "user", "content": [{"text": text}]}]}
    record = (await http.post(THREADS, json=body)).json()["data"]
    thread_id, delta = record["thread_id"], dict(record)
    while not is_last(delta):
        delta = {"thread_id": thread_id, **(await poll(http, delta)).json()["data"]}
    return delta


def is_last(delta: Json) -> bool:
    return "Waiting" in json.dumps(delta.get("messages_by_idx", {}))


async def test_a_poll_that_waits_is_answered_when_the_server_begins_to_stop() -> None:
    with ServerProcess(AGUI_AGENT="assistant", AGUI_ROBOTO="on") as server:
        base = f"http://127.0.0.1:{server.port}"
        async with asyncio.timeout(BOUND), httpx.AsyncClient(base_url=base, timeout=BOUND) as http:
            http.headers[SESSION_HEADER] = "session"
            delta = await started(http, "wait 60")
            waiting = asyncio.create_task(poll(http, delta))
            await http.get("/ping")  # the poll has been sent
            server.term()
            answer = await waiting
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"]["status"] == "roboto_turn"
        server.wait()
        assert [line for line in server.log if "Exception" in line or "Traceback" in line] == []
