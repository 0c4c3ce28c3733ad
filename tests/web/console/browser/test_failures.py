"""Answers that were stopped or have failed, and messages that were refused."""

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Route, expect

from tests.web.console.browser.conftest import Visit, over_both
from tests.web.console.driver import User, command_of, serve_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]

REQUEST = re.compile("MODEL_ERROR · request [0-9a-f]{32}")


async def test_a_failed_answer_names_its_error_and_is_tried_again(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    alert, notice = user.conversation.get_by_role("alert"), user.conversation.locator(".notice")
    await user.say("fail")
    for is_loaded_again in (False, True):
        if is_loaded_again:
            await user.page.reload()
        await expect(alert).to_contain_text("The model failed.")
        await expect(alert).to_contain_text(REQUEST)
    await user.press("Try again")
    await expect(user.messages.get_by_role("group", name="Versions")).to_have_text("2/2")
    await expect(alert).to_contain_text("MODEL_ERROR")
    await user.finishes("stream 1")
    for is_loaded_again in (False, True):
        if is_loaded_again:
            await user.page.reload()
        await expect(notice).to_contain_text("The run failed. The model failed.")
        await expect(notice).to_contain_text(REQUEST)


@pytest.fixture
def refusing(wire: str) -> Iterator[str]:
    """The built-in assistant with another ``AGUI_ERROR_STATUS`` for each transport, and bodies of 20 KB at most."""
    status = "http" if wire == "sse" else "stream"
    with serve_page(AGUI_ERROR_STATUS=status, AGUI_MAX_BODY_BYTES="20000") as server:
        yield server.url


async def begin(visit: Visit, refusing: str) -> User:
    """A user with a thread in which one answer has been given. The browser reports each status of a refusal."""
    user = await visit(refusing)
    user.expect_complaints("Failed to load resource")
    await user.finishes("stream 1")
    return user


@over_both
async def test_a_busy_thread_is_an_alert_in_words_and_its_message_stays_until_it_is_tried_again(
    visit: Visit, refusing: str
) -> None:
    user = await begin(visit, refusing)
    other = await user.open_tab(user.page.url)
    alert = other.conversation.get_by_role("alert")
    await other.reads("hello world,")
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    await other.finishes("stream 2")
    await expect(alert).to_contain_text("Another run is active on this thread.")
    await expect(alert).to_contain_text("THREAD_BUSY")
    await other.gets_focus()
    await expect(other.messages).to_have_text(["stream 1", "wait 60", "stream 2Not sent"])
    await other.threads.get_by_text("stream 1", exact=True).click()
    await expect(alert).to_contain_text("THREAD_BUSY")
    await user.press("Stop")
    await user.reads("You stopped this answer.")
    await other.press("Try again")
    await other.reads("hello world, hello world,")
    await expect(other.messages).to_have_text(["stream 1", "wait 60", "stream 2"])
    await expect(alert).to_have_count(0)


@over_both
async def test_a_message_that_is_too_large_says_so_before_it_is_sent_or_when_it_is_refused(
    visit: Visit, refusing: str
) -> None:
    user = await begin(visit, refusing)
    await user.say("x" * 21_000)
    await expect(user.page.get_by_role("alert")).to_contain_text("The message is too large by 6.1 KB.")
    await expect(user.composer).to_have_value("x" * 21_000)
    await user.say("stream 2")
    await user.reads("hello world, hello world,")

    async def tell_nothing(route: Route) -> None:
        if command_of(route.request) == "capabilities":
            await route.fulfill(body='data: {"type":"CUSTOM","name":"command.result","value":{"capabilities":{}}}\n\n')
        else:
            await route.fallback()

    await user.page.route("**/invocations", tell_nothing)
    await user.page.reload()
    await user.reads("hello world,")
    await user.say("x" * 21_000)
    alert = user.conversation.get_by_role("alert")
    await expect(alert).to_contain_text("PAYLOAD_TOO_LARGE")
    await expect(alert).to_contain_text("The body has more than 20000 bytes.")
    await user.is_done()
    await expect(user.messages.last).to_contain_text("Not sent: The body has more than 20000 bytes.")
    await user.say("stream 3")
    await user.reads("hello world, hello world, hello world,")
