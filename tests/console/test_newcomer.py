"""The first minute with `make run`: a server without settings, and a user who clicks."""

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import serve_page

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]


@pytest.fixture(scope="module")
def unset() -> Iterator[str]:
    """The server of `make run`, on another port."""
    with serve_page() as server:
        yield server.url


async def test_a_newcomer_gets_to_a_tool_an_approval_and_a_fork_by_clicks(visit: Visit, unset: str) -> None:
    user = await visit(unset, color_scheme="light")
    await expect(user.page.get_by_label("Suggestions").get_by_role("button")).to_have_count(6)
    await user.page.get_by_role("button", name="Call a tool").click()
    await user.reads("The result of calculate is 14.")
    await user.is_done()
    tool_thread = user.page.url
    await user.press("New chat")
    await user.page.get_by_role("button", name="Approve a change").click()
    await user.press("Allow")
    await user.reads("The result of set_theme is The theme is dark now.")
    await expect(user.page.locator("body")).to_have_css("background-color", "rgb(22, 22, 24)")
    threads = user.page.get_by_role("navigation", name="Threads")
    await threads.get_by_role("button", name="calculate 2*(3+4)", exact=True).click()
    await user.reads("The result of calculate is 14.")
    await user.press("Fork from here")
    await expect(user.page).not_to_have_url(tool_thread)
    await expect(threads.get_by_role("listitem")).to_have_count(3)
    await user.press("Ask again")
    await user.is_done()
    await user.reads("The result of calculate is 14.")


async def test_a_newcomer_sees_reasoning_subagents_questions_and_stop_by_buttons(visit: Visit, unset: str) -> None:
    user = await visit(unset)
    await user.page.get_by_role("button", name="Use a subagent").click()
    await user.reads("The result of delegate")
    await user.press("New chat")
    await user.page.get_by_role("button", name="Answer a question").click()
    await user.press("Rather not")
    await user.reads("The user did not want to say.")
    await user.press("New chat")
    await user.page.get_by_role("button", name="Stop an answer").click()
    await user.reads("Waiting 30 s.")
    await user.press("Stop")
    await user.reads("You stopped this answer.")
    await user.press("New chat")
    await user.page.get_by_role("button", name="Approve a change").click()
    await user.press("Deny")
    await user.press("Deny")
    await user.reads("The user denied this.")
    await user.press("New chat")
    await user.page.get_by_role("button", name="See it think").click()
    await expect(user.conversation.get_by_text(re.compile("^Thought"))).to_be_visible()


async def test_the_commands_that_a_greeting_is_answered_with_are_shown_as_they_are_typed(
    visit: Visit, unset: str
) -> None:
    user = await visit(unset)
    await user.say("hello")
    await expect(user.conversation.get_by_text("calculate 2*(3+4)", exact=True)).to_be_visible()
    await expect(user.conversation.get_by_text('call calculate {"expression": "6*7"}', exact=True)).to_be_visible()
