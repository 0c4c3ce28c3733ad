"""The server of ``agui chat --web``, for an agent behind the local AgentCore, which takes signed requests or tokens."""

from collections.abc import AsyncIterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from agui_client import SessionOptions
from agui_container.aws.platform.authorizer import CustomJwtAuthorizer, JwtAuthorizer
from agui_container.cli.target import Target
from agui_container.cli.web_page import build_page
from tests.auth.issuer import AUDIENCE, TestIssuer
from tests.aws.platform.process import NO_CREDENTIALS
from tests.behaviour.server import listening
from tests.cli.deployed import deployed, page_for, signed_runtime
from tests.engine.doubles import ask
from tests.secret_search import planted
from tests.sse import events_of
from tests.websocket import receive_until, send, socket_to

pytestmark = [pytest.mark.wire, pytest.mark.processes]

LIST = {"command": {"type": "threads.list"}}


@pytest.fixture
async def page() -> AsyncIterator[str]:
    async with signed_runtime() as runtime, listening(build_page(page_for(runtime, planted("aws")))) as address:
        yield f"{address}/"


async def test_a_refusal_of_the_platform_is_shown() -> None:
    async with (
        signed_runtime() as runtime,
        listening(build_page(page_for(runtime, "another"))) as address,
        httpx.AsyncClient(base_url=address, headers={"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "s" * 33}) as http,
    ):
        listed = await http.post("/invocations", json=LIST)
        run = await http.post("/invocations", json=ask())
    assert (listed.status_code, run.status_code) == (403, 403)


async def test_a_runtime_for_tokens_gets_the_token_from_the_page_and_not_from_the_browser(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in NO_CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    issuer = TestIssuer()
    async with listening(issuer.scripted_app()) as issuer.url:
        token = issuer.token("alice", aud=AUDIENCE)
        rules = {"discoveryUrl": issuer.discovery_url, "allowedAudience": [AUDIENCE]}
        async with deployed(JwtAuthorizer(CustomJwtAuthorizer.model_validate(rules))) as runtime:
            cases: list[tuple[SessionOptions, str]] = [
                ({"token": token}, "RUN_FINISHED"),
                ({"token": f"{token}x"}, "closed"),
                ({}, "closed"),
            ]
            for options, end in cases:
                target = Target("runtime", runtime, {**options, "session_id": "s" * 33})
                async with listening(build_page(target)) as address, httpx.AsyncClient(base_url=address) as http:
                    listed = await http.post("/invocations", json=LIST)
                    run = await http.post("/invocations", json=ask())
                    assert await end_over_a_socket(address) == end
                assert listed.is_success is run.is_success is (end == "RUN_FINISHED")
    assert "Traceback" not in caplog.text


async def end_over_a_socket(address: str) -> str:
    async with socket_to(address) as socket:
        try:
            await send(socket, ask(run="r2"))
            frames = await receive_until(socket, lambda frame: frame.get("type") in {"RUN_FINISHED", "RUN_ERROR"})
        except ConnectionClosed:
            return "closed"
    return str(frames[-1]["type"])


async def test_other_web_pages_cannot_drive_the_agent(page: str) -> None:
    async with httpx.AsyncClient(base_url=page) as http:
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"}):
            refused = await http.post("/invocations", json=LIST, headers=headers)
            assert refused.status_code == 403


async def test_a_session_that_agentcore_would_refuse_is_refused_with_the_reason(page: str) -> None:
    async with httpx.AsyncClient(
        base_url=page, headers={"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "short"}
    ) as http:
        answer = await http.post("/invocations", json=LIST)
    [refusal] = events_of(answer.content)
    assert (answer.status_code, refusal["code"]) == (502, "ACCESS_DENIED")
    assert "33 to 256" in refusal["message"]
