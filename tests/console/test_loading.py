"""The first visit: how soon the page can be used, and which files it loads."""

import re
import statistics
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, Request, expect

from tests.console.driver import User
from tests.console.profiles import Profiles

pytestmark = pytest.mark.asyncio(loop_scope="package")

VISITS = 3
ROUNDS = 3
USABLE_MS = 1_000
FIRST_VISIT_BYTES = 200 * 1024

# The frame after the one in which the composer has the focus begins when that one is painted. The timer runs when the
# main thread is free.
OBSERVE = """(() => {
    const observe = () => {
        const isReady = document.activeElement?.getAttribute("aria-label") === "Message";
        requestAnimationFrame(isReady ? () => setTimeout(() => performance.mark("usable")) : observe);
    };
    observe();
})()"""

READ_USABLE = """async () => {
    let marks = [];
    while (marks.length === 0) {
        await new Promise(requestAnimationFrame);
        marks = performance.getEntriesByName("usable");
    }
    return marks[0].startTime;
}"""


@asynccontextmanager
async def newcomer(profiles: Profiles, *, slowdown: int = 1) -> AsyncIterator[Page]:
    """A tab of a user who has nothing in a cache, on a computer that is slower by this factor."""
    context = await profiles.browser.new_context()
    page = await context.new_page()
    devtools = await context.new_cdp_session(page)
    await devtools.send("Network.enable")
    await devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
    await devtools.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    yield page
    await context.close()


async def time_to_use(profiles: Profiles, address: str) -> float:
    """Milliseconds until a first visit can be used: the median of some visits."""
    times: list[float] = []
    for _ in range(VISITS):
        async with newcomer(profiles, slowdown=4) as page:
            await page.add_init_script(OBSERVE)
            await page.goto(address)
            times.append(await page.evaluate(READ_USABLE))
    return statistics.median(times)


@pytest.mark.alone
async def test_the_first_visit_is_usable_within_a_second_at_a_quarter_of_the_speed(
    profiles: Profiles, assistant: str
) -> None:
    medians = [await time_to_use(profiles, assistant)]
    while min(medians) >= USABLE_MS and len(medians) < ROUNDS:  # other programs may have the machine for a moment
        medians.append(await time_to_use(profiles, assistant))
    assert min(medians) < USABLE_MS, medians


async def test_the_first_visit_loads_little_and_colours_and_formulas_load_when_they_are_used(
    profiles: Profiles, scripted: str
) -> None:
    async with newcomer(profiles) as page:
        requests: list[Request] = []

        def add(request: Request) -> None:
            requests.append(request)

        page.on("requestfinished", add)
        user = User(page, [])
        await page.goto(scripted)
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


def parts(requests: list[Request]) -> set[str]:
    """Files of the page, chunks by the name of their module."""
    return {
        found[1] for request in requests if (found := re.search(r"/console/(?:chunks/(?=\w+-))?([\w.]+)", request.url))
    }
