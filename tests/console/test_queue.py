"""Messages that are written while a run is open."""

import pytest
from playwright.async_api import expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import release

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]


async def test_a_message_that_is_written_during_an_answer_is_sent_after_it(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("slowly")
    await user.reads("word3 ")
    await user.say("hello")
    waiting = user.page.get_by_label("Messages that wait").get_by_role("listitem")
    await expect(waiting).to_contain_text("hello")
    await expect(user.messages).to_have_count(1)
    await release(scripted)
    await user.reads("Hello.")
    await user.is_done()
    await expect(user.messages).to_have_text(["slowly", "hello"])
    await expect(waiting).to_have_count(0)


async def test_a_message_that_waits_is_not_sent_after_a_stop_until_the_user_says_so(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted)
    await user.say("slowly")
    await user.reads("word3 ")
    await user.say("hello")
    await user.say("steps")
    waiting = user.page.get_by_label("Messages that wait").get_by_role("listitem")
    await expect(waiting).to_have_count(2)
    await waiting.last.get_by_role("button", name="Do not send").click()
    await user.press("Stop")
    await user.reads("You stopped this answer.")
    await user.is_done()
    await expect(user.messages).to_have_count(1)
    await user.press("Send now")
    await user.reads("Hello.")
    await expect(waiting).to_have_count(0)


async def test_a_message_that_waits_stays_with_its_thread_and_outlives_a_reload(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("slowly")
    await user.reads("word3 ")
    await user.say("hello")
    waiting = user.page.get_by_label("Messages that wait").get_by_role("listitem")
    await expect(waiting).to_have_count(1)
    await user.press("New chat")
    await expect(waiting).to_have_count(0)
    await user.page.get_by_role("navigation", name="Threads").get_by_role("button", name="slowly").first.click()
    await expect(waiting).to_contain_text("hello")
    await user.page.reload()
    await expect(waiting).to_contain_text("hello")
    await user.reads("word3 ")
    await release(scripted)
    await user.reads("Hello.")
    await expect(user.messages).to_have_text(["slowly", "hello"])
    await expect(waiting).to_have_count(0)
