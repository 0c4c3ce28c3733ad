"""What the page loads: its own files at the first visit, and the thread that its address names."""

import json
import re
from itertools import pairwise

import pytest
from playwright.async_api import Request, expect

from tests.web.console.browser.conftest import Visit
from tests.web.console.driver import User, command_of

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]

FIRST_VISIT_BYTES = 200 * 1024


def parts(requests: list[Request]) -> set[str]:
    return {
        found[1] for request in requests if (found := re.search(r"/console/(?:chunks/(?=\w+-))?([\w.]+)", request.url))
    }


async def test_the_first_visit_loads_little_and_colours_and_formulas_load_when_they_are_used(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted)
    address = user.page.url
    await user.page.goto("about:blank")  # what the page of the fixture still loads is not of this visit
    devtools = await user.page.context.new_cdp_session(user.page)
    await devtools.send("Network.enable")
    await devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})
    requests: list[Request] = []

    def add(request: Request) -> None:
        requests.append(request)

    user.page.on("requestfinished", add)
    await user.page.goto(address)
    await user.finishes("hello")
    assert {"app.js", "app.css", "agents"} <= parts(requests)
    sizes = [await request.sizes() for request in requests]
    assert sum(size["responseBodySize"] for size in sizes) < FIRST_VISIT_BYTES
    assert parts(requests).isdisjoint({"highlight", "math"})
    await user.say("markdown")
    await expect(user.conversation.locator("code .hljs-keyword").first).to_be_visible()
    await expect(user.conversation.locator("math").first).to_be_visible()
    assert {"highlight", "math"} <= parts(requests)


LONG_THREAD = """
async (turns) => {
    const headers = { "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": localStorage.getItem("agui.session") };
    const messages = Array.from({ length: turns }, (_, at) => [
        { id: `u${at}`, role: "user", content: `question ${at}` },
        { id: `a${at}`, role: "assistant", content: `answer ${at} ` + "word ".repeat(60) },
    ]).flat();
    const last = { id: "last", role: "user", content: "hello" };
    const run = { threadId: "long", runId: "r", messages: [...messages, last], state: null, tools: [], context: [] };
    const body = JSON.stringify({ ...run, forwardedProps: {} });
    await (await fetch("invocations", { method: "POST", headers, body })).text();
}
"""
TURNS = 150

PLACE = """async () => {
    const frame = document.querySelector(".scroll");
    frame.scrollTop = 0;
    const first = document.querySelector(".turn");
    const before = first.getBoundingClientRect().top;
    const count = document.querySelectorAll(".turn").length;
    while (document.querySelectorAll(".turn").length === count) await new Promise(requestAnimationFrame);
    return Math.abs(first.getBoundingClientRect().top - before);
}"""
"""How far the first turn has moved when earlier ones have come."""


async def open_long_thread(user: User) -> None:
    await user.page.evaluate(LONG_THREAD, TURNS)
    await user.page.goto(f"{user.page.url.partition('#')[0]}#/long")
    await user.page.reload()
    await user.reads("Hello.")


async def test_a_long_thread_is_read_page_by_page_and_the_readers_place_stays(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    befores: list[str] = []

    def look(request: Request) -> None:
        if command_of(request) == "threads.get":
            befores.append(json.loads(request.post_data or "")["command"].get("before", ""))

    user.page.on("request", look)
    await open_long_thread(user)
    assert set(befores) == {""}
    assert await user.page.evaluate(PLACE) < 2
    numbers: list[int] = []
    while 0 not in numbers:
        await user.page.locator(".scroll").evaluate("(frame) => { frame.scrollTop = 0; }")
        await user.page.evaluate("() => new Promise(requestAnimationFrame)")
        texts = await user.messages.all_inner_texts()
        numbers = [int(text.split()[-1]) for text in texts if text.startswith("question")]
        assert all(after - before == 1 for before, after in pairwise(numbers))
    assert numbers == list(range(TURNS))
    await expect(user.page.get_by_role("button", name="Show earlier messages")).to_have_count(0)


async def test_a_long_stream_is_followed_until_the_reader_scrolls_up(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.finishes("markdown", "markdown", "markdown")
    await user.reaches_end()
    to_end = user.page.get_by_role("button", name="Go to the latest message")
    await expect(to_end).to_have_count(0)
    await user.page.mouse.move(700, 300)
    await user.page.mouse.wheel(0, -1500)
    await expect(to_end).to_be_visible()
    await user.page.evaluate("document.querySelector('.composer textarea').focus()")
    await user.finishes("hello")
    assert await user.is_at_end()
    await expect(to_end).to_have_count(0)
    await user.page.mouse.wheel(0, -1500)
    await expect(to_end).to_be_visible()
    await user.press("New chat")
    await expect(to_end).to_have_count(0)
