"""Stop pressed before the server has admitted the run."""

import asyncio

import pytest
from playwright.async_api import Route, expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import NO_NETWORK, WAIT_MS, PageServer, User

pytestmark = pytest.mark.asyncio(loop_scope="package")


@over_both
async def test_a_stop_that_no_server_answers_says_so(lasting: PageServer, visit: Visit, wire: str) -> None:
    user = await visit(lasting.url, wire=wire)
    await user.page.clock.install()
    await user.page.reload()
    await user.say("slowly")
    await user.reads("word5 ")
    lasting.kill()
    await expect(user.page.get_by_text("Connecting again")).to_be_visible()
    await user.press("Stop")
    await user.page.clock.fast_forward(5_000)
    await expect(user.conversation.get_by_role("alert")).to_contain_text("The run may still be open there.")
    user.expect_complaints(*NO_NETWORK)


SLOW_NETWORK = """
() => {
    const held = [];
    window.isHeld = false;
    let isReleased = false;
    const hold = (send) => {
        window.isHeld = true;
        held.push(send);
    };
    window.release = () => {
        isReleased = true;
        for (const send of held.splice(0)) send();
    };
    const fetchIt = window.fetch;
    window.fetch = (url, init) => {
        if (window.isHeld || !String(url).endsWith("/invocations")) return fetchIt(url, init);
        return new Promise((resolve) => hold(() => resolve(fetchIt(url, init))));
    };
    const Socket = window.WebSocket;
    window.WebSocket = class extends Socket {
        send(data) {
            if (isReleased) super.send(data);
            else hold(() => super.send(data));
        }
    };
}
"""
"""The first request of a run, or all messages of its socket, wait for ``release()``."""

STATUSES = """
async (count) => {
    const headers = { "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": localStorage.getItem("agui.session") };
    for (;;) {
        const { runs } = await (await fetch("runs", { headers })).json();
        const statuses = runs.map(({ status }) => status);
        const isOver = statuses.every((status) => status !== "queued" && status !== "running");
        if (statuses.length === count && isOver) return statuses;
    }
}
"""
"""Outcomes of this user's runs, once there are that many and none is open."""


async def stop(user: User) -> None:
    """Press Stop, and see that the page shows a stopped answer and no failure."""
    await user.press("Stop")
    await user.reads("You stopped this answer.")
    await user.is_done()
    await expect(user.page.get_by_role("alert")).to_have_count(0)


@over_both
async def test_a_run_that_is_stopped_before_its_admission_is_cancelled_when_it_is_admitted(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted)
    await user.page.evaluate(SLOW_NETWORK)
    await user.say("slowly")
    async with asyncio.timeout(WAIT_MS / 1000):
        await user.page.evaluate("async () => { while (!isHeld) await new Promise(requestAnimationFrame); }")
    await stop(user)
    assert await user.page.evaluate(STATUSES, 0) == []
    await user.page.evaluate("release()")
    assert await user.page.evaluate(STATUSES, 1) == ["cancelled"]
    user.expect_complaints(*NO_NETWORK)
    await user.reads("You stopped this answer.")
    await user.say("hello")
    await user.reads("Hello.")


@over_both
async def test_a_run_that_is_stopped_before_the_page_has_loaded_its_agents_is_not_sent(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted)
    loads, loaded = asyncio.Event(), asyncio.Event()

    async def delay(route: Route) -> None:
        loads.set()
        await loaded.wait()
        await route.continue_()

    await user.page.route("**/chunks/agents-*.js", delay)
    await user.page.reload()
    await loads.wait()
    await user.say("slowly")
    await stop(user)
    async with user.page.expect_response("**/chunks/agents-*.js"):
        loaded.set()
    await user.say("hello")
    await user.reads("Hello.")
    assert await user.page.evaluate(STATUSES, 1) == ["finished"]
