"""Connections that break and servers that die in the middle of a stream: no text is lost, and none is doubled."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, Route, WebSocketRoute, expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import NO_NETWORK, PageServer, release
from tests.console.profiles import Profiles

pytestmark = pytest.mark.asyncio(loop_scope="package")

WORDS = " ".join(f"word{number}" for number in range(40))


@over_both
async def test_a_stream_goes_on_where_it_was_when_the_connection_comes_back(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.page.evaluate(BREAKABLE)
    await user.say("slowly")
    await user.reads("word5 ")
    await user.page.evaluate("breakConnections()")
    await release(scripted)
    await user.reads("word39")
    await user.is_done()
    await expect(user.conversation.locator(".markdown")).to_have_text(WORDS)
    user.expect_complaints(*NO_NETWORK)


BREAKABLE = """
() => {
    const controllers = [];
    const sockets = [];
    const fetchIt = window.fetch;
    window.fetch = async (url, init = {}) => {
        const response = await fetchIt(url, init);
        if (!String(url).endsWith("/invocations")) return response;
        let fail;
        const broken = new Promise((_, reject) => { fail = () => reject(new TypeError("network error")); });
        broken.catch(() => {});
        controllers.push(() => fail());
        const reader = response.body.getReader();
        const body = new ReadableStream({
            async pull(controller) {
                try {
                    const { done, value } = await Promise.race([reader.read(), broken]);
                    if (done) controller.close(); else controller.enqueue(value);
                } catch (error) { reader.cancel().catch(() => {}); controller.error(error); }
            },
        });
        return new Response(body, { status: response.status, headers: response.headers });
    };
    const Socket = window.WebSocket;
    window.WebSocket = class extends Socket {
        constructor(...all) { super(...all); sockets.push(this); }
    };
    window.breakConnections = () => {
        for (const stop of controllers.splice(0)) stop();
        for (const socket of sockets.splice(0)) socket.close();
    };
}
"""


async def test_a_server_that_dies_in_a_stream_and_comes_back_loses_no_text_that_was_shown(
    lasting: PageServer, visit: Visit
) -> None:
    users = [await visit(lasting.url, wire=wire) for wire in ("sse", "websocket")]
    for user in users:
        await user.say("slowly")
    for user in users:
        await user.reads("word5 ")
    seen = [await user.answer() for user in users]
    lasting.kill()
    for user in users:
        await expect(user.page.get_by_text("Connecting again")).to_be_visible()
    lasting.start()
    for user, text in zip(users, seen, strict=True):
        await expect(user.page.get_by_role("alert")).to_contain_text("RUN_LOST", timeout=200_000)
        shown = await user.answer()
        assert shown.startswith(text)
        assert WORDS.startswith(shown)
        await user.press("Try again")
    for user in users:
        await expect(user.conversation.get_by_role("alert")).to_have_count(0)
        await user.reads("word19")
    await release(lasting.url)
    for user in users:
        await user.reads("word39")
        await user.is_done()
        await expect(user.conversation.locator(".markdown")).to_have_text(WORDS)
        await expect(user.messages).to_have_count(1)
        user.expect_complaints(*NO_NETWORK)


async def test_a_page_without_its_server_says_so_until_the_server_is_back(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)

    async def refuse(route: Route) -> None:
        await route.abort("connectionrefused")

    await user.page.route("**/threads", refuse)
    await user.page.reload()
    await expect(user.page.get_by_text("The server cannot be reached.")).to_be_visible()
    await expect(user.page.get_by_text("Offline")).to_be_visible()
    await user.page.unroute_all()
    await expect(user.page.get_by_text("Offline")).to_have_count(0)
    await expect(user.page.get_by_text("Your chats will be here.")).to_be_visible()
    user.expect_complaints(*NO_NETWORK)


async def test_an_idle_page_notices_that_its_server_has_ended(lasting: PageServer, visit: Visit) -> None:
    user = await visit(lasting.url)
    await expect(user.page.get_by_text("Your chats will be here.")).to_be_visible()
    lasting.kill()
    await expect(user.page.get_by_text("Offline")).to_be_visible()
    lasting.start()
    await expect(user.page.get_by_text("Offline")).to_have_count(0)
    user.expect_complaints(*NO_NETWORK)


async def test_an_idle_page_says_within_5_seconds_that_its_server_hangs_and_that_it_answers_again(
    profiles: Profiles, scripted: str
) -> None:
    async with await profiles.browser.new_context() as context:  # the clock is one of all pages of a context
        page = await context.new_page()
        await page.clock.install()
        await page.goto(scripted)
        await expect(page.get_by_text("Your chats will be here.")).to_be_visible()
        await page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=1))
        is_hanging = True

        async def hang(route: Route) -> None:
            if not is_hanging:
                await route.continue_()

        await page.route(re.compile("/(ping|threads)$"), hang)
        await page.clock.run_for(5000)
        await expect(page.get_by_text("Offline")).to_be_visible()
        await page.clock.run_for(5000)
        is_hanging = False  # what was asked for before gets no answer
        await page.clock.resume()
        await expect(page.get_by_text("Offline")).to_have_count(0)


REFUSAL = {
    "type": "RUN_ERROR",
    "code": "RATE_LIMIT_EXCEEDED",
    "message": "Too many runs.",
    "metadata": {"retryable": True},
}


async def refuse_run(page: Page) -> None:
    """Refuse the next run, whichever transport it comes by."""

    async def refuse(route: Route) -> None:
        await route.fulfill(content_type="text/event-stream", body=f"data: {json.dumps(REFUSAL)}\n\n")

    refused: list[WebSocketRoute] = []

    def refuse_socket(socket: WebSocketRoute) -> None:
        if refused:
            socket.connect_to_server()
        else:
            refused.append(socket)
            socket.on_message(lambda _: socket.send(json.dumps(REFUSAL)))

    await page.route("**/invocations", refuse, times=1)
    await page.route_web_socket("**/ws?*", refuse_socket)


@over_both
async def test_edited_arguments_are_sent_again_after_a_refusal(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.is_done()
    await refuse_run(user.page)
    await user.press("Edit")
    await user.page.get_by_label("Expression").fill("6*8")
    await user.press("Allow with these")
    await expect(user.page.get_by_role("alert")).to_contain_text("Too many runs.")
    await user.press("Try again")
    await user.reads("The result of calculate is 48.")
