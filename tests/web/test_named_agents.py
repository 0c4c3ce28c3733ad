"""Several agents on one server: who answers, by the name in a body or in a path."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from agui_container.agents.as_agent import AgentLoadError
from agui_container.main import build_app
from agui_container.settings import Settings, SettingsError
from agui_container.settings_sources import load_settings
from tests.behaviour.server import serving
from tests.engine.doubles import Json, ask
from tests.sse import events_of
from tests.websocket import receive_frame, send, socket_to

AGENTS = ["poet=tests.protocols.grpc.tools:poet", "asker=tests.protocols.grpc.tools:asker", "helper=assistant"]
"""The assistant is a ``Responder``, and the others may begin threads."""


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with serving(build_app(Settings(agents=AGENTS))) as url, httpx.AsyncClient(base_url=url) as client:
        yield client


async def say(http: httpx.AsyncClient, path: str = "/invocations", **props: Any) -> tuple[int, list[Json]]:  # noqa: ANN401
    """Send a run on a thread of its own; gives the status and the events."""
    body = ask(f"{path} {props}", text="stream 1") | ({"forwardedProps": props} if props else {})
    response = await http.post(path, json=body)
    return response.status_code, events_of(response.content)


def text_of(events: list[Json]) -> str:
    return "".join(event.get("delta", "") for event in events)


@pytest.mark.parametrize(
    ("path", "props", "text"),
    [
        ("/invocations", {}, "Roses are red."),
        ("/invocations", {"agent": "helper"}, "hello world, "),
        ("/agents/helper/invocations", {}, "hello world, "),
        ("/agents/asker/invocations", {"agent": "asker", "other": 1}, "Let me ask."),
    ],
)
async def test_the_named_agent_answers_and_without_a_name_the_first(
    http: httpx.AsyncClient, path: str, props: Json, text: str
) -> None:
    assert text_of((await say(http, path, **props))[1]) == text


UNKNOWN = "there is no agent named 'cook'; known are poet, asker, helper."


@pytest.mark.parametrize(
    ("path", "props", "message"),
    [
        ("/invocations", {"agent": "cook"}, UNKNOWN),
        ("/agents/cook/invocations", {}, UNKNOWN),
        ("/invocations", {"agent": 7}, "Input should be a valid string."),
        ("/agents/poet/invocations", {"agent": "helper"}, "must be absent or the name in the path."),
    ],
)
async def test_a_name_that_is_wrong_is_refused_and_begins_no_run(
    http: httpx.AsyncClient, path: str, props: Json, message: str
) -> None:
    status, [refusal] = await say(http, path, **props)
    assert (status, refusal["code"]) == (400, "VALIDATION_ERROR")
    assert refusal["message"] == f"forwardedProps.agent: {message}"
    assert (await http.get("/runs")).json()["runs"] == []


async def test_a_socket_of_an_agent_reaches_it(http: httpx.AsyncClient) -> None:
    url = str(http.base_url).rstrip("/")
    async with socket_to(url, "/agents/helper/ws") as socket:
        await send(socket, ask(text="stream 1"))
        while (event := await receive_frame(socket))["type"] != "TEXT_MESSAGE_CONTENT":
            assert event["type"] in {"RUN_STARTED", "TEXT_MESSAGE_START"}
        assert event["delta"] == "hello world, "


async def test_a_waiting_approval_is_that_of_the_agent_that_asked(http: httpx.AsyncClient) -> None:
    asked = events_of((await http.post("/agents/asker/invocations", json=ask())).content)
    [question] = asked[-1]["outcome"]["interrupts"]
    [waiting] = (await http.get(f"/threads/{asked[0]['threadId']}")).json()["waiting"]
    assert waiting["id"] == question["id"]


async def test_capabilities_name_the_agents_and_the_models_of_each(http: httpx.AsyncClient) -> None:
    custom = (await http.get("/capabilities")).json()["custom"]
    offline = {"provider": "offline", "name": "offline"}
    assert custom["agent"] == "poet"
    assert custom["agents"] == [{"name": "poet"}, {"name": "asker"}, {"name": "helper", "model": offline}]


def test_the_default_agent_is_the_one_that_is_set_or_the_first() -> None:
    both = ["one=m:one", "two=m:two"]
    assert Settings(agents=both).agent == "one"
    assert Settings(agents=both, agent="two").agent == "two"
    assert Settings(agents=both, agent="m:three").agent_references == {
        "m:three": "m:three",
        "one": "m:one",
        "two": "m:two",
    }
    assert Settings(agents=["one=m:one", "assistant=assistant"]).agent == "assistant"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("m:one", "'m:one' is not NAME=module:attribute, NAME=URL or NAME=assistant"),
        ("a/b=m:one", "'a/b=m:one' is not NAME=module:attribute, NAME=URL or NAME=assistant"),
        ("one=m:one,one=m:two", "the name 'one' is there twice"),
    ],
)
def test_a_wrong_entry_stops_the_start(monkeypatch: pytest.MonkeyPatch, value: str, reason: str) -> None:
    monkeypatch.setenv("AGUI_AGENTS", value)
    with pytest.raises(SettingsError, match=reason):
        load_settings()


def test_an_agent_that_cannot_be_loaded_stops_the_start() -> None:
    with pytest.raises(AgentLoadError, match="missing"):
        build_app(Settings(agents=["one=tests.protocols.grpc.tools:poet", "two=tests.protocols.grpc.tools:missing"]))
