"""Polls that wait while the server stops."""

import asyncio
import json

import httpx
import pytest

from agui_container.main import build_app
from agui_container.settings import Settings
from agui_container.transports.caller_middleware import SESSION_HEADER
from agui_container.transports.roboto.views import SessionReader
from tests.engine.doubles import Json
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

THREADS = "/v1/ai/threads"
BOUND = 300.0


async def poll(http: httpx.AsyncClient, delta: Json) -> httpx.Response:
    """Ask for what is new since a record or a delta."""
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
    """True for the delta with the last text before the agent's silence."""
    return "Waiting" in json.dumps(delta.get("messages_by_idx", {}))


@requirement("roboto.idle")
async def test_a_poll_that_waits_is_answered_when_the_server_begins_to_stop() -> None:
    limits = {"AGUI_LIMIT_BY": "session", "AGUI_CALLER_LIMITS": json.dumps({"streams": 2})}
    with ServerProcess(AGUI_AGENT="assistant", AGUI_ROBOTO="on", **limits) as server:
        base = f"http://127.0.0.1:{server.port}"
        async with asyncio.timeout(BOUND), httpx.AsyncClient(base_url=base, timeout=BOUND) as http:
            http.headers[SESSION_HEADER] = "session"
            delta = await started(http, "wait 60")
            polls = [asyncio.create_task(poll(http, delta)) for _ in range(2)]
            (refused,), (waiting,) = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
            assert (await refused).status_code == 429  # the other one has the last stream, and waits
            server.term()
            answer = await waiting
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"]["status"] == "roboto_turn"
        server.wait()
        assert [line for line in server.log if "Exception" in line or "Traceback" in line] == []


@requirement("roboto.idle")
async def test_a_poll_that_the_server_cancels_while_it_stops_is_refused_as_one_to_repeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()

    async def read_without_end(*_: object) -> bytes:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(SessionReader, "delta", read_without_end)
    app = build_app(Settings(roboto=True))
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://a") as http:
        asking = asyncio.create_task(http.get(f"{THREADS}/some/delta"))
        await begun.wait()
        await app.state.service.drain(0)
        asking.cancel()  # the application runs in this task
        answer = await asking
    assert answer.status_code == 503
    assert answer.json()["error"]["error_code"] == "RobotoServiceUnavailableException"
