"""Handlers of ``AGUIApp`` and tools with AgentCore Identity, unchanged, over the wire."""

import json
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.agents.agentcore_sdk.identity_service import AUTHORIZE, IdentityService, identity_service
from tests.server.sockets.process import ROOT, ServerProcess
from tests.sse import events_of

pytestmark = pytest.mark.packages

Json = dict[str, Any]

HANDLERS = "tests.agents.agentcore_sdk.handlers"
COMMAND = (sys.executable, "-m", "agui_container", "serve")
"""Without ``-W error``: the SDK's own models use what pydantic deprecates."""

HEADERS = {
    "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "session-of-at-least-thirty-three-characters",
    "X-Amzn-Bedrock-AgentCore-Runtime-Request-Id": "request-1",
    "WorkloadAccessToken": "ada",
    "OAuth2CallbackUrl": "https://app.example/callback",
    "Authorization": "Bearer caller",
    "X-Mine": "yes",
}


@pytest.fixture(scope="module")
def service() -> Iterator[IdentityService]:
    with identity_service() as service:
        yield service


def serve(service: IdentityService, **settings: str) -> ServerProcess:
    account = {"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    urls = {"AWS_ENDPOINT_URL_BEDROCK_AGENTCORE": service.url, "AWS_ENDPOINT_URL_STS": service.url}
    return ServerProcess(COMMAND, ROOT, **urls, **account, **settings)


@pytest.fixture(scope="module")
def server(service: IdentityService) -> Iterator[ServerProcess]:
    with serve(service, AGUI_AGENT=f"{HANDLERS}:agent") as server:
        yield server


def ask(server: ServerProcess, text: str, thread: str | None = None, resume: list[Json] | None = None) -> list[Json]:
    body: Json = {"threadId": thread or str(uuid.uuid4()), "runId": str(uuid.uuid4())}
    body |= {"messages": [{"id": "m1", "role": "user", "content": text}]}
    body |= {"resume": resume} if resume else {}
    url = f"http://127.0.0.1:{server.port}/invocations"
    return events_of(httpx.post(url, json=body, headers=HEADERS, timeout=120).content)


def text_of(events: list[Json]) -> str:
    assert events[-1]["type"] == "RUN_FINISHED", events[-1]
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def status(server: ServerProcess) -> Json:
    found: Json = httpx.get(f"http://127.0.0.1:{server.port}/ping", timeout=120).json()
    return found


def test_an_entrypoint_finds_its_context_and_the_sdks(server: ServerProcess) -> None:
    assert json.loads(text_of(ask(server, "facts"))) == {
        "session": HEADERS["X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"],
        "sameSession": HEADERS["X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"],
        "request": "request-1",
        "authorization": "Bearer caller",
        "custom": "yes",
        "workload": "ada",
        "callback": "https://app.example/callback",
    }


def test_the_decorators_of_agentcore_identity_get_tokens_for_the_caller(
    server: ServerProcess, service: IdentityService
) -> None:
    said = text_of(ask(server, "identity"))
    assert said == (
        "calendar with token of calendar for ada; weather with key of weather for ada; "
        "identity of ada; api with token of STS; "
    )
    assert service.requests[-2]["resourceOauth2ReturnUrl"] == "https://app.example/callback"


def test_a_decorator_in_a_tool_of_the_assistant_gets_a_token_for_the_caller(service: IdentityService) -> None:
    with serve(service, AGUI_AGENT="assistant", AGUI_TOOLS=f"{HANDLERS}:calendar") as server:
        said = text_of(ask(server, "call calendar {}"))
    assert "calendar with token of calendar for ada" in said


@pytest.mark.parametrize("way", ["task", "async_task", "ping", "force_ping_status"])
def test_an_application_of_the_sdk_keeps_the_ping_busy_while_its_own_would_be(server: ServerProcess, way: str) -> None:
    assert status(server)["status"] == "Healthy"
    ask(server, way)
    assert status(server)["status"] == "HealthyBusy"
    ask(server, way)
    assert status(server)["status"] == "Healthy"


def interrupt_of(events: list[Json]) -> Json:
    (interrupt,) = events[-1]["outcome"]["interrupts"]
    found: Json = interrupt
    return found


def test_consent_that_a_handler_needs_is_an_interrupt_with_a_link(
    server: ServerProcess, service: IdentityService
) -> None:
    service.has_consent = False
    thread = str(uuid.uuid4())
    interrupt = interrupt_of(ask(server, "consent", thread))
    assert (interrupt["reason"], interrupt["metadata"]) == ("oauth_consent", {"url": AUTHORIZE})
    service.has_consent = True
    answer = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {}}]
    assert text_of(ask(server, "consent", thread, answer)) == "drive with token of drive for ada"
