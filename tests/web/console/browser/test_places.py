"""The page behind a path prefix, and on a developer's machine for an agent behind AgentCore."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from fastapi import FastAPI
from playwright.async_api import expect
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_container import Settings, create_app
from agui_container.cli.web_page import build_page
from tests.behaviour.server import listening, serving
from tests.cli.deployed import page_for, signed_runtime
from tests.secret_search import planted
from tests.web.console.browser.conftest import Visit, over_both
from tests.web.console.driver import curl

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]

PREFIX = "/agents/o'clock;tea&cake"
"""A shell would read it in its own way."""


class PrefixRemover:
    """A proxy that passes paths on without the prefix, of which the application is not told."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "path" in scope:
            shorter = {"path": scope["path"].removeprefix(PREFIX), "raw_path": scope["raw_path"][len(PREFIX) :]}
            scope = {**scope, **shorter}
        await self._app(scope, receive, send)


@pytest_asyncio.fixture(loop_scope="package")
async def prefixed(wire: str) -> AsyncIterator[str]:
    """The address of the page, mounted into an application for SSE, and behind a proxy for WebSocket."""
    app = create_app(None, Settings())
    outer = FastAPI(lifespan=app.router.lifespan_context, openapi_url=None)
    if wire == "sse":
        outer.mount(PREFIX, app)
    else:
        outer.mount("", app)
        outer.add_middleware(PrefixRemover)
    outer.state.service = app.state.service
    async with serving(outer) as url:
        yield f"{url}{PREFIX}/"


@over_both
async def test_a_page_under_a_prefix_runs_lists_and_loads_again(prefixed: str, visit: Visit) -> None:
    user = await visit(prefixed)
    await user.finishes("calculate 6*7")
    await user.reads("The result of calculate is 42.")
    await expect(user.items).to_have_text(["calculate 6*7"])
    assert user.page.url.startswith(prefixed)
    await user.page.reload()
    await user.reads("The result of calculate is 42.")
    await user.inspect("Events")
    await user.press("Ask again")
    await user.is_done()
    command = await user.copies("Copy as curl")
    assert (await curl(command))[-1] == "RUN_FINISHED"


@over_both
async def test_a_user_talks_with_a_deployed_agent_on_the_page(visit: Visit) -> None:
    async with (
        signed_runtime() as runtime,
        listening(build_page(page_for(runtime, planted("aws")))) as address,
    ):
        user = await visit(f"{address}/")
        user.expect_complaints("409")  # the session begins with one request at a time
        await expect(user.page.locator(".answerer")).to_contain_text("offline model")
        await user.say("calculate 6*7")
        await user.call("calculate").get_by_role("button", name="Allow").click()
        await user.reads("42")
        await user.is_done()
        await expect(user.items).to_have_count(1)
        await user.page.reload()
        await user.reads("42")
        await user.threads.get_by_label("Search threads").fill("6*7")
        await expect(user.items).to_have_count(1)
        await user.inspect("Replay")
        await user.page.get_by_label("Runs").get_by_role("button").first.click()
        await expect(user.page.get_by_role("group", name="Replay")).to_be_visible()
        await user.press("Close replay")
        await user.page.close()
