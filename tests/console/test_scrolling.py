"""The place in a long conversation: it follows the text until the reader scrolls up."""

import pytest
from playwright.async_api import expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import User, release

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]

SCROLLED_TO_END = """() => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector(".scroll");
    return scrollHeight > clientHeight && scrollHeight - scrollTop - clientHeight < 2;
}"""


async def is_at_end(user: User) -> bool:
    """Wait for a frame, and return True if the end of a conversation that can scroll is shown."""
    await user.page.evaluate("() => new Promise(requestAnimationFrame)")
    at_end: bool = await user.page.evaluate(SCROLLED_TO_END)
    return at_end


async def test_a_long_stream_is_followed_to_its_end(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 3000")
    await user.is_done()
    assert await is_at_end(user)
    await expect(user.page.get_by_role("button", name="Go to the latest message")).to_have_count(0)


async def test_a_reader_who_has_scrolled_up_stays_there_until_the_next_message(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    for _ in range(3):
        await user.say("markdown")
        await user.is_done()
    await user.say("slowly")
    await user.reads("word3 ")
    await user.page.mouse.move(700, 300)
    await user.page.mouse.wheel(0, -60)
    await release(scripted)
    await user.is_done()
    assert not await is_at_end(user)
    await user.page.mouse.wheel(0, -1500)
    to_end = user.page.get_by_role("button", name="Go to the latest message")
    await expect(to_end).to_be_visible()
    await user.say("hello")
    await user.is_done()
    assert await is_at_end(user)
    await expect(to_end).to_have_count(0)


async def test_no_arrow_is_shown_over_a_page_that_cannot_scroll(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    for _ in range(3):
        await user.say("markdown")
        await user.is_done()
    await user.page.mouse.move(700, 300)
    await user.page.mouse.wheel(0, -2000)
    to_end = user.page.get_by_role("button", name="Go to the latest message")
    await expect(to_end).to_be_visible()
    await user.press("New chat")
    await expect(to_end).to_have_count(0)
