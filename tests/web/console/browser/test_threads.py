"""The list of threads, branches, forks, feedback, and several tabs."""

import pytest
from playwright.async_api import expect

from agui_core.commands import MAX_PAGE
from tests.web.console.browser.conftest import Visit
from tests.web.console.driver import User

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]


async def rename(user: User, title: str, new_title: str) -> None:
    await user.items.first.hover()
    await user.press(f"Rename {title}")
    await user.threads.get_by_label("Title").fill(new_title)
    await user.threads.get_by_label("Title").press("Enter")


async def delete(user: User, title: str) -> None:
    await user.items.filter(has_text=title).first.hover()
    await user.items.get_by_role("button", name=f"Delete {title}").first.click()
    await user.press("Delete")


async def test_threads_are_listed_opened_searched_renamed_and_deleted(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    search = user.threads.get_by_label("Search threads")
    await user.finishes("stream 1")
    await expect(user.items).to_have_text(["stream 1"])
    address = user.page.url
    await user.press("New chat")
    await user.finishes("think about rain")
    await expect(user.items).to_have_text(["think about rain", "stream 1"])
    await user.page.get_by_role("button", name="stream 1", exact=True).click()
    await user.reads("hello world,")
    assert user.page.url == address
    await user.page.go_back()
    await user.reads("I have thought about rain.")
    for text in ("STREAM", "HELLO world"):
        await search.fill(text)
        await expect(user.items).to_have_text(["stream 1"])
    await search.fill("no such words")
    await expect(user.threads.get_by_text("Nothing found.")).to_be_visible()
    await search.fill("stream")
    await rename(user, "stream 1", "Greetings")
    await search.fill("")
    await expect(user.items).to_have_text(["think about rain", "Greetings"])
    await user.page.reload()
    await expect(user.items).to_have_text(["think about rain", "Greetings"])
    await delete(user, "Greetings")
    await expect(user.items).to_have_text(["think about rain"])


MANY_THREADS = """
async (count) => {
    const headers = { "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": localStorage.getItem("agui.session") };
    for (let number = 0; number < count; number++) {
        const messages = [{ id: "m", role: "user", content: `hay ${number}` }];
        const run = { threadId: crypto.randomUUID(), runId: "r", messages, state: null, tools: [], context: [] };
        const body = JSON.stringify({ ...run, forwardedProps: {} });
        await (await fetch("invocations", { method: "POST", headers, body })).text();
    }
}
"""


async def test_a_long_list_has_pages_is_searched_whole_and_says_what_has_failed(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    problem = user.threads.get_by_role("alert")
    await user.finishes("needle")
    await user.page.evaluate(MANY_THREADS, MAX_PAGE)
    await user.page.reload()
    await expect(user.items).to_have_count(MAX_PAGE)
    await expect(user.items.filter(has_text="needle")).to_have_count(0)
    await user.threads.get_by_label("Search threads").fill("needle")
    await expect(user.items).to_have_text(["needle"])
    await user.break_commands("threads.rename", "threads.delete")
    await delete(user, "needle")
    await expect(problem).to_have_text("The thread was not deleted. The server cannot be reached.")
    await rename(user, "needle", "haystack")
    await expect(problem).to_have_text("The thread was not renamed. The server cannot be reached.")
    await expect(user.threads.get_by_label("Title")).to_have_value("haystack")
    await user.threads.get_by_label("Title").press("Escape")
    await user.threads.get_by_label("Search threads").fill("")
    await user.page.unroute_all()
    await user.break_commands("threads.list")
    await user.press("Show more")
    await expect(problem).to_have_text("No more threads were loaded. The server cannot be reached.")
    await user.page.unroute_all()
    await user.press("Show more")
    await expect(user.items).to_have_count(MAX_PAGE + 1)
    await expect(problem).to_have_count(0)
    await user.press("New chat")
    await user.say("straw")
    await expect(user.items.first).to_have_text("straw")
    await expect(user.items).to_have_count(MAX_PAGE + 2)
    await expect(user.items.last).to_have_text("needle")


async def test_tabs_of_a_browser_see_the_same_threads_and_runs_and_another_browser_does_not(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    running = user.threads.get_by_label("A run is open")
    await user.finishes("stream 1")
    other = await user.open_tab(user.page.url)
    await other.reads("hello world,")
    await other.finishes("think about rain")
    await user.gets_focus()
    await user.reads("I have thought about rain.")
    await user.say("wait 60")
    await expect(running).to_have_count(1)
    await other.gets_focus()
    await other.reads("Waiting 60 s.")
    await other.press("Stop")
    await other.reads("You stopped this answer.")
    await user.reads("This answer was stopped.")
    await expect(running).to_have_count(0)
    stranger = await visit(assistant)
    await expect(stranger.page.get_by_text("Your chats will be here.")).to_be_visible()


async def test_a_thread_is_forked_at_a_message_and_feedback_stays(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.finishes("stream 1", "think about rain")
    original = user.page.url
    await user.conversation.get_by_role("button", name="Fork from here").first.click()
    await expect(user.messages).to_have_count(1)
    await expect(user.page).not_to_have_url(original)
    await user.finishes("stream 2")
    await user.reads("hello world, hello world,")
    await user.page.goto(original)
    await user.reads("I have thought about rain.")
    rated = user.page.get_by_role("button", name="Bad answer").last
    await rated.click()
    form = user.page.get_by_role("form", name="Feedback")
    await form.get_by_label("slow").check()
    await form.get_by_label("other").check()
    await form.get_by_label("Notes").fill("Two days.")
    await form.get_by_role("button", name="Send feedback").click()
    await expect(rated).to_have_attribute("aria-pressed", "true")
    await user.page.reload()
    await expect(rated).to_have_attribute("aria-pressed", "true")
    await rated.click()
    await expect(form.get_by_label("slow")).to_be_checked()
    await expect(form.get_by_label("Notes")).to_have_value("Two days.")
