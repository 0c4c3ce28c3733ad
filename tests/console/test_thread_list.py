"""The list of threads in the page: search, rename, delete, pages."""

import pytest
from playwright.async_api import Route, expect

from agui_container.protocol.commands import MAX_PAGE
from tests.console.conftest import Visit, over_both
from tests.console.driver import NO_NETWORK

pytestmark = pytest.mark.asyncio(loop_scope="package")


@over_both
async def test_threads_are_listed_searched_renamed_and_deleted(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    threads = user.page.get_by_role("navigation", name="Threads")
    items = threads.get_by_role("listitem")
    await user.say("stream 1")
    await expect(items).to_have_text(["stream 1"])
    await user.press("New chat")
    await user.say("think about rain")
    await expect(items).to_have_text(["think about rain", "stream 1"])
    await threads.get_by_label("Search threads").fill("STREAM")
    await expect(items).to_have_text(["stream 1"])
    await items.first.hover()
    await user.press("Rename stream 1")
    await threads.get_by_label("Title").fill("Greetings")
    await threads.get_by_label("Title").press("Enter")
    await threads.get_by_label("Search threads").fill("")
    await expect(items).to_have_text(["think about rain", "Greetings"])
    await user.page.reload()
    await expect(items).to_have_text(["think about rain", "Greetings"])
    await items.filter(has_text="Greetings").hover()
    await user.press("Delete Greetings")
    await user.press("Delete")
    await expect(items).to_have_text(["think about rain"])


@over_both
async def test_a_search_finds_what_was_said(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    threads = user.page.get_by_role("navigation", name="Threads")
    await user.say("stream 1")
    await user.is_done()
    await user.press("New chat")
    await user.say("think about rain")
    await user.is_done()
    await threads.get_by_label("Search threads").fill("HELLO world")
    await expect(threads.get_by_role("listitem")).to_have_text(["stream 1"])
    await threads.get_by_label("Search threads").fill("no such words")
    await expect(threads.get_by_text("Nothing found.")).to_be_visible()


@over_both
async def test_a_search_that_is_refused_says_why(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 2")
    await user.is_done()

    async def refuse(route: Route) -> None:
        error = {"type": "RUN_ERROR", "code": "RATE_LIMIT_EXCEEDED", "message": "Too many requests."}
        await route.fulfill(status=429, json=error)

    await user.page.route("**/threads?*text=*", refuse)
    threads = user.page.get_by_role("navigation", name="Threads")
    await threads.get_by_label("Search threads").fill("hello world")
    await expect(threads.get_by_role("alert")).to_have_text("The search has failed. Too many requests.")
    await expect(threads.get_by_text("Nothing found.")).to_have_count(0)
    await user.page.unroute("**/threads?*text=*")
    await threads.get_by_label("Search threads").fill("hello")
    await expect(threads.get_by_role("listitem")).to_have_text(["stream 2"])
    await expect(threads.get_by_role("alert")).to_have_count(0)
    user.expect_complaints("429")


async def test_a_search_is_used_with_keys(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    await user.press("New chat")
    await user.page.keyboard.press("Control+k")
    search = user.page.get_by_label("Search threads")
    await user.page.keyboard.type("stream")
    await user.page.keyboard.press("Enter")
    await user.reads("hello world,")
    await search.press("Escape")
    await expect(search).to_have_value("")


@over_both
async def test_a_thread_is_deleted_while_its_run_is_open(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    items = user.page.get_by_role("navigation", name="Threads").get_by_role("listitem")
    await user.say("stream 1")
    await expect(items).to_have_text(["stream 1"])
    await user.say("wait 30")
    await items.first.hover()
    await user.press("Delete stream 1")
    await user.press("Delete")
    await expect(items).to_have_count(0)
    await expect(user.messages).to_have_count(0)
    await user.say("hi")
    await user.is_done()
    await expect(items).to_have_text(["hi"])


async def test_a_search_finds_threads_that_are_not_listed_yet(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("needle")
    await user.is_done()
    await user.page.evaluate(MANY_THREADS, MAX_PAGE)
    await user.page.reload()
    threads = user.page.get_by_role("navigation", name="Threads")
    items = threads.get_by_role("listitem")
    await expect(items).to_have_count(MAX_PAGE)
    await expect(items.filter(has_text="needle")).to_have_count(0)
    await threads.get_by_label("Search threads").fill("needle")
    await expect(items).to_have_text(["needle"])


async def test_pages_of_the_list_that_are_loaded_stay_when_it_changes(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.page.evaluate(MANY_THREADS, MAX_PAGE + 1)
    await user.page.reload()
    items = user.page.get_by_role("navigation", name="Threads").get_by_role("listitem")
    await user.press("Show more")
    await expect(items).to_have_count(MAX_PAGE + 1)
    await user.say("needle")
    await expect(items.first).to_have_text("needle")
    await expect(items).to_have_count(MAX_PAGE + 2)
    await expect(items.last).to_have_text("hay 0")


@over_both
async def test_a_thread_is_listed_as_running_from_the_first_run_to_its_end(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    threads = user.page.get_by_role("navigation", name="Threads")
    items = threads.get_by_role("listitem")
    running = threads.get_by_label("A run is open")
    await user.say("wait 60")
    await expect(items).to_have_text(["wait 60"])
    await expect(running).to_have_count(1)
    second = await user.open_tab(user.page.url)
    await second.reads("Waiting 60 s.")
    await user.press("New chat")
    await expect(items).to_have_text(["wait 60"])
    await expect(running).to_have_count(1)
    await second.press("Stop")
    await expect(running).to_have_count(0)
    await expect(items).to_have_text(["wait 60"])


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


async def test_a_change_of_the_list_that_fails_says_so_and_keeps_the_title_that_was_typed(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted)
    await user.page.evaluate(MANY_THREADS, MAX_PAGE)
    await user.say("needle")
    await user.is_done()
    threads = user.page.get_by_role("navigation", name="Threads")
    needle = threads.get_by_role("listitem").filter(has_text="needle")
    problem = threads.get_by_role("alert")
    await expect(needle).to_be_visible()

    async def refuse(route: Route) -> None:
        await route.abort("connectionrefused")

    await user.page.route("**/threads*/**", refuse)
    await user.page.route("**/threads?page=*", refuse)
    await needle.hover()
    await user.press("Delete needle")
    await user.press("Delete")
    await expect(problem).to_have_text("The thread was not deleted. The server cannot be reached.")
    await needle.hover()
    await user.press("Rename needle")
    await threads.get_by_label("Title").fill("haystack")
    await threads.get_by_label("Title").press("Enter")
    await expect(problem).to_have_text("The thread was not renamed. The server cannot be reached.")
    await expect(threads.get_by_label("Title")).to_have_value("haystack")
    await user.press("Show more")
    await expect(problem).to_have_text("No more threads were loaded. The server cannot be reached.")
    user.expect_complaints(*NO_NETWORK)
    await user.page.unroute_all()
    await user.press("Show more")
    await expect(threads.get_by_role("listitem")).to_have_count(MAX_PAGE + 1)
    await expect(problem).to_have_count(0)
