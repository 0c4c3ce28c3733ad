"""Every view of the page as axe-core sees it in both themes."""

import pytest
from playwright.async_api import expect

from tests.console.conftest import Visit
from tests.console.driver import PHONE

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_axe_finds_nothing_in_a_new_chat(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()
    assert await user.violations() == []


async def test_axe_finds_nothing_in_a_conversation_with_calls_and_an_approval(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("think about rain")
    await user.is_done()
    await user.press("Good answer")
    await user.say("delegate what time is it")
    await user.is_done()
    await user.call("current_time").get_by_role("button").click()
    await user.say("calculate 6*7")
    await expect(user.page.get_by_role("region", name="Approval of calculate")).to_be_visible()
    await user.press("Inspector")
    for tab in ("Trace", "State", "Run", "Replay", "Server", "Events"):
        await user.page.get_by_role("tab", name=tab).click()
        assert await user.violations() == [], tab


async def test_axe_finds_nothing_in_markdown_forms_and_failures(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("markdown")
    await user.is_done()
    await expect(user.conversation.locator(".hljs-keyword").first).to_be_visible()
    await user.say("steps")
    await user.is_done()
    await user.say("ask")
    await expect(user.page.get_by_role("form", name="Where to?")).to_be_visible()
    assert await user.violations() == []


async def test_axe_finds_nothing_in_the_forms_of_an_approval(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.press("Edit")
    assert await user.violations() == []
    await user.press("JSON")
    await user.page.get_by_label("Arguments as JSON").fill("6*8")
    await user.press("Allow with these")
    await expect(user.page.get_by_role("alert")).to_be_visible()
    assert await user.violations() == []
    await user.press("Back")
    await user.press("Deny")
    await expect(user.page.get_by_label("Reason")).to_be_visible()
    assert await user.violations() == []


async def test_axe_finds_nothing_in_feedback_and_dialogs(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    await user.press("Bad answer")
    await user.page.get_by_role("form", name="Feedback").get_by_label("other").check()
    thread = user.page.get_by_role("navigation", name="Threads").get_by_role("listitem")
    await thread.hover()
    await user.press("Rename stream 1")
    await expect(user.page.get_by_label("Title")).to_be_focused()
    assert await user.violations() == []
    await user.page.keyboard.press("Escape")
    await expect(user.page.get_by_label("Title")).to_have_count(0)
    await thread.hover()
    await user.press("Delete stream 1")
    await expect(user.page.get_by_role("dialog", name="Delete “stream 1”?")).to_be_visible()
    assert await user.violations() == []
    await user.page.keyboard.press("Escape")
    await user.page.keyboard.press("?")
    await expect(user.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert await user.violations() == []


async def test_axe_finds_nothing_in_a_failure_and_in_its_replay(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("fail")
    await expect(user.page.get_by_role("alert")).to_contain_text("MODEL_ERROR")
    assert await user.violations() == []
    await user.inspect("Replay")
    await user.page.get_by_label("Runs").get_by_role("button").click()
    await expect(user.page.get_by_role("group", name="Replay")).to_be_visible()
    assert await user.violations() == []


async def test_axe_finds_nothing_on_a_phone(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True)
    await user.say("stream 1")
    await user.is_done()
    assert await user.violations() == []
    await user.press("Threads")
    threads = user.page.get_by_role("navigation", name="Threads")
    await expect(threads.get_by_role("button", name="stream 1", exact=True)).to_be_visible()
    assert await user.violations() == []
    await user.press("Close threads")
    await expect(threads).to_be_hidden()
    await user.press("Inspector")
    await expect(user.page.get_by_role("complementary", name="Inspector")).to_be_in_viewport()
    assert await user.violations() == []
