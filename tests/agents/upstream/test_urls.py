"""An AG-UI server at a URL as the agent: headers of the caller, redirects, and servers that are not there."""

import json

import httpx
import pytest

from agui_container import create_app
from agui_container.settings import Settings
from tests.agents.upstream import servers
from tests.agents.upstream.servers import Server, playing, redirect, said
from tests.behaviour.server import listening, serving
from tests.engine.doubles import WAIT, eventually
from tests.ports import free_port
from tests.secret_search import planted

pytestmark = pytest.mark.wire

BODY = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hi"}]}
HEADERS = {"x-tenant": "blue", "x-other": "red"}


async def ask(url: str, **settings: object) -> list[dict[str, object]]:
    app = create_app(settings=Settings.model_validate({"agent": url, **settings}))
    async with serving(app) as container, httpx.AsyncClient(timeout=WAIT) as client:
        answer = await client.post(f"{container}/invocations", json=BODY, headers=HEADERS)
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


async def test_named_headers_of_the_caller_go_along() -> None:
    server = Server(playing(*said("hello")))
    async with listening(server.app) as url:
        events = await ask(f"{url}/agent", upstream_headers="X-Tenant,authorization")
    assert [event["delta"] for event in events if "delta" in event] == ["hello"]
    assert server.headers[0]["x-tenant"] == "blue"
    assert "x-other" not in server.headers[0]


async def test_a_redirect_within_the_origin_keeps_the_headers_and_another_origin_never_gets_them() -> None:
    server = Server(playing(*said("hello")), redirect("/moved", "/agent"))
    async with listening(server.app) as url:
        elsewhere = Server(playing(*said("hello")), redirect("/moved", f"{url}/agent"))
        async with listening(elsewhere.app) as other:
            for start in (url, other):
                events = await ask(f"{start}/moved", upstream_headers="x-tenant")
                assert events[-1]["type"] == "RUN_FINISHED"
    assert ["x-tenant" in headers for headers in server.headers] == [True, False]


@pytest.mark.parametrize("is_kept", [True, False])
async def test_raw_events_are_kept_if_the_settings_say_so(*, is_kept: bool) -> None:
    raw: dict[str, object] = {"from": "model"}
    items: list[servers.Item] = [
        {"type": "RAW", "event": raw},
        {"type": "CUSTOM", "name": "n", "value": 1, "rawEvent": raw},
    ]
    async with listening(Server(playing(*items)).app) as url:
        _, *events, _ = await ask(f"{url}/agent", upstream_raw=is_kept)
    assert [event["type"] for event in events] == (["RAW", "CUSTOM"] if is_kept else ["CUSTOM"])
    assert events[-1].get("rawEvent") == (raw if is_kept else None)


async def test_a_cancel_closes_the_connection_to_the_server() -> None:
    server = Server(playing(*said("one"), servers.WAIT))
    async with listening(server.app) as url, serving(create_app(settings=Settings(agent=f"{url}/agent"))) as container:
        async with (
            httpx.AsyncClient(base_url=container, timeout=WAIT) as client,
            client.stream("POST", "/invocations", json=BODY) as answer,
        ):
            async for line in answer.aiter_lines():
                if "TEXT_MESSAGE_CONTENT" in line:
                    await client.post("/runs/r/cancel")
        await eventually(lambda: "answered" in server.log)


async def test_a_server_that_is_not_there_is_one_sentence() -> None:
    *_, end = await ask(f"http://127.0.0.1:{free_port()}/agent")
    assert (end["type"], end["code"], end["message"]) == ("RUN_ERROR", "AGENT_ERROR", "The agent's server failed.")


async def test_a_password_in_the_url_is_sent_to_the_server_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="agui_container")
    server = Server(playing({"type": "RUN_ERROR", "message": "no"}))
    async with listening(server.app) as url:
        agent = f"{url}/agent".replace("://", f"://ada:{planted('upstream')}@")
        await ask(agent)
        assert server.headers[0]["authorization"].startswith("Basic ")
        async with serving(create_app(settings=Settings(agent=agent))) as container, httpx.AsyncClient() as client:
            capabilities = (await client.get(f"{container}/capabilities")).json()
    masked = f"{url}/agent".replace("://", "://ada:***@")
    assert capabilities["custom"]["agent"] == masked
    assert f"upstream failed run=r url={masked} " in caplog.text
    assert f"thread=t agent={masked} " in caplog.text
    assert planted("upstream") not in caplog.text


async def test_a_container_stands_behind_another_one() -> None:
    async with serving(create_app(settings=Settings(console=False))) as url:
        events = await ask(f"{url}/invocations", tools="tests.agents.upstream.pay_tools:pay")
    assert events[-1]["type"] == "RUN_FINISHED"
    assert "".join(str(event["delta"]) for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")
