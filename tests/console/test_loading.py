"""The first visit: what it loads, and how its work is divided. ``make bench`` measures how soon it can be used."""

import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, Request, expect

from tests.console.driver import Complaints, User
from tests.console.long_tasks import no_long_task
from tests.console.profiles import Profiles

pytestmark = pytest.mark.asyncio(loop_scope="package")

FIRST_VISIT_REQUESTS = 10
FIRST_VISIT_BYTES = 200 * 1024


@asynccontextmanager
async def newcomer(profiles: Profiles) -> AsyncIterator[Page]:
    """A tab of a user who has nothing in a cache."""
    context = await profiles.browser.new_context()
    page = await context.new_page()
    devtools = await context.new_cdp_session(page)
    await devtools.send("Network.enable")
    await devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
    yield page
    await context.close()


async def test_the_first_visit_loads_little_and_colours_formulas_and_diagrams_load_when_they_are_used(
    profiles: Profiles, scripted: str
) -> None:
    async with newcomer(profiles) as page:
        requests: list[Request] = []

        def add(request: Request) -> None:
            requests.append(request)

        page.on("requestfinished", add)
        user = User(page, Complaints())
        async with no_long_task(page):
            await page.goto(scripted)
            await expect(user.composer).to_be_focused()
        addresses = Counter(request.url for request in requests)
        assert len(addresses) <= FIRST_VISIT_REQUESTS, addresses
        # A page that loads slowly asks for threads and health again, and never for a file.
        assert {times for address, times in addresses.items() if "/console/" in address} == {1}, addresses
        await user.say("hello")
        await user.reads("Hello.")
        await user.is_done()
        assert {"app.js", "app.css", "agents"} <= parts(requests)
        sizes = [await request.sizes() for request in requests]
        assert sum(size["responseBodySize"] for size in sizes) < FIRST_VISIT_BYTES
        assert parts(requests).isdisjoint({"highlight", "math"})
        await user.say("markdown")
        await expect(user.conversation.locator("code .hljs-keyword").first).to_be_visible()
        await expect(user.conversation.locator("math").first).to_be_visible()
        assert {"highlight", "math"} <= parts(requests)
        assert "diagram.html" not in parts(requests)
        await user.say("diagram")
        await expect(user.conversation.frame_locator("iframe").locator("svg")).to_be_visible()
        assert "diagram.html" in parts(requests)


def parts(requests: list[Request]) -> set[str]:
    """Files of the page, chunks by the name of their module."""
    return {
        found[1] for request in requests if (found := re.search(r"/console/(?:chunks/(?=\w+-))?([\w.]+)", request.url))
    }
