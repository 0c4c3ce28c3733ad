"""Connections that break, servers that die, and runs that are stopped before they begin."""

import pytest
from playwright.async_api import expect

from tests.web.console.browser.conftest import Visit
from tests.web.console.driver import NO_NETWORK, PageServer, release

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]

WORDS = " ".join(f"word{number}" for number in range(40))


async def test_a_run_and_a_message_that_waits_for_it_outlive_a_reload(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    waiting = user.page.get_by_label("Messages that wait").get_by_role("listitem")
    await user.say("slowly")
    await user.reads("word3 ")
    await user.say("hello")
    await expect(waiting).to_have_count(1)
    await user.press("New chat")
    await expect(waiting).to_have_count(0)
    await user.threads.get_by_role("button", name="slowly").first.click()
    await expect(waiting).to_contain_text("hello")
    await user.page.reload()
    await expect(user.items).to_have_text(["slowly"])  # the server has made a title for the open run
    await expect(waiting).to_contain_text("hello")
    await user.reads("word3 ")
    await release(scripted)
    await user.reads("Hello.")
    await expect(user.conversation.locator(".markdown").first).to_have_text(WORDS)
    await expect(user.messages).to_have_text(["slowly", "hello"])
    await expect(waiting).to_have_count(0)


NEVER_GIVE_UP = "(now => { Date.now = () => now; })(Date.now())"
"""No time passes for the page, so that it connects again however long a server takes to start."""


async def test_a_server_that_dies_in_a_stream_and_comes_back_loses_no_text_that_was_shown(
    lasting: PageServer, visit: Visit
) -> None:
    users = [await visit(lasting.url, wire=wire) for wire in ("sse", "websocket")]
    for user in users:
        await user.page.evaluate(NEVER_GIVE_UP)
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
