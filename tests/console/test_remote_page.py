"""The page of ``agui chat --web``, for an agent behind the local AgentCore, which takes signed requests or tokens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import pytest_asyncio
import uvicorn
from botocore.session import Session as AwsSession  # type: ignore[import-untyped]
from playwright.async_api import expect
from websockets.exceptions import ConnectionClosed

from agui_client import SessionOptions, SigV4
from agui_container import Settings, create_app
from agui_container.cli.target import Target
from agui_container.cli.web_page import build_page
from agui_container.platform.application import build_platform
from agui_container.platform.authorizer import CustomJwtAuthorizer, InboundAuthorizer, JwtAuthorizer, SigV4Authorizer
from agui_container.platform.data_plane import PlatformOptions
from agui_container.platform.limits import PlatformLimits
from tests.auth.issuer import AUDIENCE, TestIssuer
from tests.behaviour.server import listening, serving
from tests.console.conftest import POLICY, Visit, over_both
from tests.console.scripted import agent as scripted_agent
from tests.engine.doubles import ask
from tests.platform.doubles import RUNTIME, AttachedContainer
from tests.platform.process import NO_CREDENTIALS
from tests.requirements import requirement
from tests.secret_search import planted
from tests.sse import events_of
from tests.websocket import receive_until, send, socket_to

pytestmark = pytest.mark.asyncio(loop_scope="package")

KEY = "AKIDTEST"


def signer(secret: str) -> SigV4:
    """A signer with credentials of a test."""
    session = AwsSession()
    session.set_credentials(KEY, secret)
    return SigV4("us-east-1", session)


@asynccontextmanager
async def deployed(authorizer: InboundAuthorizer, agent: object = None) -> AsyncIterator[str]:
    """An agent, the assistant if none is given, behind a platform; gives the address of the runtime."""
    settings = Settings(tool_policy=POLICY, error_status="stream", console=False)
    limits = PlatformLimits()
    async with serving(create_app(agent, settings)) as url:
        port = int(url.rpartition(":")[2])
        app = build_platform(PlatformOptions(lambda: AttachedContainer(port), authorizer, limits))
        config = uvicorn.Config(app, log_config=None, access_log=False, ws_max_size=limits.frame_bytes)
        async with listening(app, config) as platform:
            yield f"{platform}{RUNTIME}/invocations"


@pytest_asyncio.fixture(loop_scope="package")
async def runtime() -> AsyncIterator[str]:
    """A runtime that verifies signatures."""
    async with deployed(SigV4Authorizer(KEY, planted("aws"))) as address:
        yield address


def page_for(runtime: str, secret: str) -> Target:
    return Target("runtime", runtime, {"sigv4": signer(secret)})


@pytest_asyncio.fixture(loop_scope="package")
async def page(runtime: str) -> AsyncIterator[str]:
    """The page on this machine."""
    async with listening(build_page(page_for(runtime, planted("aws")))) as address:
        yield f"{address}/"


@requirement("terminal.web")
@over_both
async def test_a_user_talks_with_a_deployed_agent_on_the_page(page: str, visit: Visit) -> None:
    user = await visit(page)
    await expect(user.page.locator(".answerer")).to_contain_text("offline model")
    await user.say("calculate 6*7")
    await user.call("calculate").get_by_role("button", name="Allow").click()
    await user.reads("42")
    await user.is_done()
    threads = user.page.get_by_role("navigation", name="Threads")
    await expect(threads.get_by_role("listitem")).to_have_count(1)
    await user.page.reload()
    await user.reads("42")
    await user.page.get_by_label("Search threads").fill("6*7")
    await expect(threads.get_by_role("listitem")).to_have_count(1)
    await user.inspect("Replay")
    await user.page.get_by_label("Runs").get_by_role("button").first.click()
    await expect(user.page.get_by_role("group", name="Replay")).to_be_visible()
    await user.press("Close replay")
    await user.page.close()


@over_both
@requirement("terminal.web")
async def test_a_diagram_of_a_deployed_agent_is_drawn(visit: Visit) -> None:
    async with (
        deployed(SigV4Authorizer(KEY, planted("aws")), scripted_agent) as runtime,
        listening(build_page(page_for(runtime, planted("aws")))) as address,
    ):
        user = await visit(f"{address}/")
        await user.say("diagram")
        await expect(user.conversation.frame_locator("iframe").locator("svg")).to_contain_text("Is it known?")
        await user.is_done()
        await user.page.close()


@requirement("terminal.web")
async def test_a_refusal_of_the_platform_is_shown(runtime: str) -> None:
    async with (
        listening(build_page(page_for(runtime, "another"))) as address,
        httpx.AsyncClient(base_url=address, headers={"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "s" * 33}) as http,
    ):
        listed = await http.get("/threads")
        [refusal] = events_of(listed.content)
        run = await http.post("/invocations", json=ask())
    assert (listed.status_code, refusal["type"]) == (502, "RUN_ERROR")
    assert run.status_code == 403


@requirement("terminal.web")
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
                    listed = await http.get("/threads")
                    run = await http.post("/invocations", json=ask())
                    assert await end_over_a_socket(address) == end
                assert listed.is_success is run.is_success is (end == "RUN_FINISHED")
    assert "Traceback" not in caplog.text


async def end_over_a_socket(address: str) -> str:
    """Return the last event of a run over the page's WebSocket, or that the socket was closed."""
    async with socket_to(address) as socket:
        try:
            await send(socket, ask(run="r2"))
            frames = await receive_until(socket, lambda frame: frame.get("type") in {"RUN_FINISHED", "RUN_ERROR"})
        except ConnectionClosed:
            return "closed"
    return str(frames[-1]["type"])


@requirement("terminal.web")
async def test_other_web_pages_cannot_drive_the_agent(page: str) -> None:
    async with httpx.AsyncClient(base_url=page) as http:
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"}):
            refused = await http.get("/threads", headers=headers)
            assert refused.status_code == 403


@requirement("terminal.web")
async def test_a_session_that_agentcore_would_refuse_is_refused_with_the_reason(page: str) -> None:
    async with httpx.AsyncClient(
        base_url=page, headers={"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "short"}
    ) as http:
        answer = await http.get("/threads")
    [refusal] = events_of(answer.content)
    assert (answer.status_code, refusal["code"]) == (502, "ACCESS_DENIED")
    assert "33 to 256" in refusal["message"]
