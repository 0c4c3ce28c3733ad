"""Threads that are opened, read in two tabs, forked and rated, and a page that is loaded again."""

import asyncio
from itertools import count

import pytest
from playwright.async_api import Route, expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import NO_NETWORK, PHONE, WAIT_MS, User, release

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_an_address_that_cannot_be_read_opens_a_new_chat(visit: Visit, assistant: str) -> None:
    user = await visit(f"{assistant}#/%E0%A4%A")
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()
    await user.say("stream 1")
    await user.reads("hello world,")


@over_both
async def test_nothing_is_sent_to_a_thread_that_could_not_be_loaded(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()

    async def refuse(route: Route) -> None:
        await route.abort("connectionrefused")

    await user.page.route("**/threads/*", refuse)
    await user.page.reload()
    await expect(user.page.get_by_role("alert")).to_contain_text("The server cannot be reached.")
    user.expect_complaints(*NO_NETWORK)
    await expect(user.page.get_by_label("Suggestions")).to_have_count(0)
    await user.say("stream 2")
    await expect(user.composer).to_have_value("stream 2")
    await expect(user.page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    await user.page.unroute_all()
    await user.press("Load again")
    await user.reads("hello world,")
    await user.composer.press("Enter")
    await user.reads("hello world, hello world,")
    await expect(user.messages).to_have_text(["stream 1", "stream 2"])


@over_both
async def test_a_thread_is_opened_and_the_address_names_it(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    address = user.page.url
    await user.press("New chat")
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()
    await user.page.get_by_role("button", name="stream 1", exact=True).click()
    await user.reads("hello world,")
    assert user.page.url == address
    await user.page.go_back()
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()


@over_both
async def test_two_tabs_of_a_browser_see_the_same_threads_and_another_browser_does_not(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    second = await user.open_tab(user.page.url)
    await second.reads("hello world,")
    stranger = await visit(assistant)
    await expect(stranger.page.get_by_text("Your chats will be here.")).to_be_visible()


@over_both
async def test_a_tab_that_gets_the_focus_shows_what_another_tab_has_said(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await say_in_two_tabs(user)
    await user.page.evaluate("window.dispatchEvent(new Event('focus'))")
    await user.reads("I have thought about rain.")


async def say_in_two_tabs(user: User) -> None:
    """Say something in the user's tab, and go on with the thread in another one."""
    await user.say("stream 1")
    await user.is_done()
    second = await user.open_tab(user.page.url)
    await second.reads("hello world,")
    await second.say("think about rain")
    await second.reads("I have thought about rain.")


async def hold(user: User, number: int) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold the answer to one of the next requests for a thread. Return an event of its request, and one to let go."""
    requests = count(1)
    is_asked, is_released = asyncio.Event(), asyncio.Event()

    async def answer(route: Route) -> None:
        response = await route.fetch()
        if next(requests) == number:
            is_asked.set()
            await is_released.wait()
        await route.fulfill(response=response)

    await user.page.route("**/threads/*", answer)
    return is_asked, is_released


@over_both
async def test_a_message_that_is_written_while_a_thread_loads_goes_to_that_thread(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    await user.press("New chat")
    await user.say("think about rain")
    await user.is_done()
    is_asked, is_released = await hold(user, 1)
    await user.page.get_by_role("button", name="stream 1", exact=True).click()
    async with asyncio.timeout(WAIT_MS / 1000):
        await is_asked.wait()
    await user.say("stream 2")
    await expect(user.composer).to_have_value("stream 2")
    is_released.set()
    await expect(user.messages).to_have_text(["stream 1"])
    await user.composer.press("Enter")
    await user.reads("hello world, hello world,")
    await expect(user.messages).to_have_text(["stream 1", "stream 2"])


@over_both
async def test_a_run_that_begins_while_its_thread_is_loaded_again_is_shown(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await say_in_two_tabs(user)
    is_asked, is_released = await hold(user, 2)
    await user.page.evaluate("window.dispatchEvent(new Event('focus'))")
    async with asyncio.timeout(WAIT_MS / 1000):
        await is_asked.wait()
    await user.press("Ask again")
    async with user.page.expect_response("**/threads/*"):
        is_released.set()
    await user.is_done()
    await expect(user.messages.locator(".user-text")).to_have_text(["stream 1"])


@over_both
async def test_a_thread_that_is_loaded_while_its_branch_is_made_is_not_shown(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await say_in_two_tabs(user)
    is_asked, is_released = await hold(user, 1)
    await user.page.evaluate("window.dispatchEvent(new Event('focus'))")
    async with asyncio.timeout(WAIT_MS / 1000):
        await is_asked.wait()

    async def load_before(route: Route) -> None:
        async with user.page.expect_response("**/threads/*"):
            is_released.set()
        await user.page.evaluate("window.dispatchEvent(new Event('focus'))")
        await user.page.evaluate("new Promise(requestIdleCallback)")
        await route.continue_()

    await user.page.route("**/fork", load_before)
    await user.press("Ask again")
    await user.is_done()
    await expect(user.messages.locator(".user-text")).to_have_text(["stream 1"])


@over_both
async def test_a_fork_does_not_leave_the_thread_that_was_opened_meanwhile(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()

    async def open_another(route: Route) -> None:
        await user.press("New chat")
        await route.continue_()

    await user.page.route("**/fork", open_another)
    await user.conversation.get_by_role("button", name="Fork from here").click()
    await expect(user.page.get_by_role("navigation", name="Threads").get_by_role("listitem")).to_have_count(2)
    assert "#" not in user.page.url
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()


@over_both
async def test_a_run_goes_on_in_a_page_that_is_loaded_again(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("slowly")
    await user.reads("word3 ")
    await user.page.reload()
    await user.reads("word3 ")
    await release(scripted)
    await user.reads("word39")
    await user.is_done()
    await expect(user.conversation.locator(".markdown")).to_have_text(" ".join(f"word{n}" for n in range(40)))


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 720}, PHONE], ids=["desktop", "phone"])
async def test_a_thread_with_a_long_title_is_deleted(visit: Visit, assistant: str, viewport: dict[str, int]) -> None:
    user = await visit(assistant, viewport=viewport)
    await user.say("stream 1")
    await user.is_done()
    if viewport is PHONE:
        await user.press("Threads")
    threads = user.page.get_by_role("navigation", name="Threads")
    items = threads.get_by_role("listitem")
    await items.hover()
    await user.press("Rename stream 1")
    await threads.get_by_label("Title").fill("x" * 200)
    await threads.get_by_label("Title").press("Enter")
    await items.hover()
    await user.press(f"Delete {'x' * 200}")
    dialog = user.page.get_by_role("dialog", name=f"Delete “{'x' * 60}…”?")
    assert await dialog.evaluate("(dialog) => dialog.scrollWidth <= dialog.clientWidth")
    await expect(dialog.get_by_role("button", name="Close")).to_be_in_viewport()
    await user.press("Delete")
    await expect(items).to_have_count(0)


@over_both
async def test_a_thread_is_forked_at_a_message(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    await user.say("think about rain")
    await user.reads("I have thought about rain.")
    original = user.page.url
    await user.conversation.get_by_role("button", name="Fork from here").first.click()
    await expect(user.messages).to_have_count(1)
    await expect(user.page).not_to_have_url(original)
    await user.say("stream 2")
    await user.reads("hello world, hello world,")
    await user.page.goto(original)
    await user.reads("I have thought about rain.")


@over_both
async def test_feedback_has_categories_and_stays(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    await user.press("Bad answer")
    form = user.page.get_by_role("form", name="Feedback")
    await form.get_by_label("slow").check()
    await form.get_by_label("other").check()
    await form.get_by_label("Notes").fill("Two days.")
    await form.get_by_role("button", name="Send feedback").click()
    rated = user.page.get_by_role("button", name="Bad answer")
    await expect(rated).to_have_attribute("aria-pressed", "true")
    await user.page.reload()
    await expect(rated).to_have_attribute("aria-pressed", "true")
    await rated.click()
    await expect(form.get_by_label("slow")).to_be_checked()
    await expect(form.get_by_label("Notes")).to_have_value("Two days.")


@over_both
async def test_a_stored_session_id_that_agentcore_would_refuse_is_replaced(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.page.evaluate("localStorage.setItem('agui.session', 'short')")
    await user.page.reload()
    await user.say("stream 1")
    await user.reads("hello world")
    assert await user.page.evaluate("localStorage.getItem('agui.session').length") >= 33
