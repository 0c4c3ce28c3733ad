"""The page behind a path prefix: mounted into somebody's application, and behind a proxy that removes the prefix."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from fastapi import FastAPI
from playwright.async_api import expect
from starlette.types import ASGIApp, Receive, Scope, Send

from agui_container import Settings, create_app
from tests.behaviour.server import serving
from tests.console.conftest import Visit, over_both
from tests.console.driver import curl

pytestmark = pytest.mark.asyncio(loop_scope="package")

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


@pytest_asyncio.fixture(loop_scope="package", params=["mounted", "proxied"])
async def address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Serve the page, and yield its address."""
    app = create_app(None, Settings())
    outer = FastAPI(lifespan=app.router.lifespan_context, openapi_url=None)
    if request.param == "mounted":
        outer.mount(PREFIX, app)
    else:
        outer.mount("", app)
        outer.add_middleware(PrefixRemover)
    outer.state.service = app.state.service
    async with serving(outer) as url:
        yield f"{url}{PREFIX}/"


@over_both
async def test_a_page_under_a_prefix_runs_lists_and_loads_again(address: str, visit: Visit) -> None:
    user = await visit(address)
    await user.say("calculate 6*7")
    await user.reads("The result of calculate is 42.")
    await user.is_done()
    threads = user.page.get_by_role("navigation", name="Threads").get_by_role("listitem")
    await expect(threads).to_have_text(["calculate 6*7"])
    assert user.page.url.startswith(address)
    await user.page.reload()
    await user.reads("The result of calculate is 42.")
    await user.press("Good answer")
    await user.press("Send feedback")
    await expect(user.page.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    await user.inspect("Events")
    await user.press("Ask again")
    await user.is_done()
    command = await user.copies("Copy as curl")
    assert (await curl(command))[-1] == "RUN_FINISHED"


async def test_pages_under_a_prefix_link_to_each_other(address: str, visit: Visit) -> None:
    user = await visit(address)
    page = user.page
    await page.goto(f"{address}no/where")
    await expect(page.get_by_role("heading", name="There is nothing at this address")).to_be_visible()
    await page.get_by_role("link", name="HTTP API").click()
    await page.locator("summary", has_text="Start a run").click()
    await page.get_by_role("link", name="RunAgentInput").first.click()
    await expect(page.locator("details", has=page.locator("#RunAgentInput"))).to_contain_text("protocolVersion")
    await page.goto(f"{address}no/where")
    await page.get_by_role("link", name="Chat page").click()
    await expect(user.composer).to_be_focused()
    user.expect_complaints("404")
