"""Long threads: the page sends what is new, and reads messages in pages."""

import json
from itertools import pairwise

import pytest
from playwright.async_api import Request, Route, WebSocket, expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import NO_NETWORK, User

pytestmark = pytest.mark.asyncio(loop_scope="package")

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


async def open_long_thread(user: User) -> None:
    await user.page.evaluate(LONG_THREAD, TURNS)
    await user.page.goto(f"{user.page.url.partition('#')[0]}#/long")
    await user.page.reload()
    await user.reads("Hello.")


@over_both
async def test_a_run_sends_only_what_the_server_does_not_have(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    sent: list[list[str]] = []

    def note(text: str | None) -> None:
        body = json.loads(text or "{}")
        if "messages" in body:
            sent.append([message["content"] for message in body["messages"]])

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: note(str(frame)))

    def look(request: Request) -> None:
        if request.url.endswith("/invocations"):
            note(request.post_data)

    user.page.on("request", look)
    user.page.on("websocket", listen)
    for text in ("one", "two", "three"):
        await user.say(text)
        await user.is_done()
    await user.page.reload()
    await expect(user.messages).to_have_count(3)
    await user.say("four")
    await user.is_done()
    assert sent == [["one"], ["two"], ["three"], ["four"]]


@over_both
async def test_a_long_thread_is_read_from_its_end_and_earlier_messages_come_on_scrolling_up(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted)
    pages: list[str] = []
    user.page.on("request", lambda request: pages.append(request.url) if "limit=" in request.url else None)
    await open_long_thread(user)
    assert not [page for page in pages if "before=" in page]
    scroller = user.page.locator(".scroll")
    numbers: list[int] = []
    while 0 not in numbers:
        await scroller.evaluate("(frame) => { frame.scrollTop = 0; }")
        await user.page.evaluate("() => new Promise(requestAnimationFrame)")
        texts = await user.messages.all_inner_texts()
        numbers = [int(text.split()[-1]) for text in texts if text.startswith("question")]
        assert all(after - before == 1 for before, after in pairwise(numbers))
    assert numbers == list(range(TURNS))
    await expect(user.page.get_by_role("button", name="Show earlier messages")).to_have_count(0)


async def test_the_readers_place_stays_when_earlier_messages_come(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await open_long_thread(user)
    place = await user.page.evaluate(
        """async () => {
            const frame = document.querySelector(".scroll");
            frame.scrollTop = 0;
            const first = document.querySelector(".turn");
            const before = first.getBoundingClientRect().top;
            const count = document.querySelectorAll(".turn").length;
            while (document.querySelectorAll(".turn").length === count) await new Promise(requestAnimationFrame);
            return Math.abs(first.getBoundingClientRect().top - before);
        }"""
    )
    assert place < 2


async def test_earlier_messages_that_could_not_be_loaded_are_asked_for_again(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)

    async def refuse(route: Route) -> None:
        await route.abort("connectionrefused")

    await user.page.route("**/threads/*before=*", refuse)
    await open_long_thread(user)
    await user.page.locator(".scroll").evaluate("(frame) => { frame.scrollTop = 0; }")
    failed = user.page.get_by_role("button", name="Earlier messages were not loaded. Try again")
    await expect(failed).to_be_visible()
    user.expect_complaints(*NO_NETWORK)
    await user.page.unroute_all()
    await failed.click()
    await expect(failed).to_have_count(0)
