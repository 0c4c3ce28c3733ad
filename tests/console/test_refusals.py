"""A refused message is an alert in words, whichever status and transport the refusal comes by."""

from collections.abc import Iterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import User, serve_page

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest.fixture(scope="module", params=["http", "stream"])
def refusing(request: pytest.FixtureRequest) -> Iterator[str]:
    """The built-in assistant with each ``AGUI_ERROR_STATUS``, and bodies of 20 KB at most."""
    with serve_page(AGUI_ERROR_STATUS=request.param, AGUI_MAX_BODY_BYTES="20000") as server:
        yield server.url


@pytest_asyncio.fixture(loop_scope="package")
async def user(visit: Visit, refusing: str) -> User:
    """A user with a thread in which one answer has been given. The browser reports each status of a refusal."""
    user = await visit(refusing)
    user.expect_complaints("Failed to load resource")
    await user.say("stream 1")
    await user.is_done()
    return user


async def say_to_busy_thread(user: User) -> User:
    """Run a thread for a minute, and say something to it in another tab, which is refused. Return that tab."""
    second = await user.open_tab(user.page.url)
    await second.reads("hello world,")
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    await second.say("stream 2")
    await expect(second.conversation.get_by_role("alert")).to_contain_text("Another run is active on this thread.")
    await expect(second.conversation.get_by_role("alert")).to_contain_text("THREAD_BUSY")
    await second.is_done()
    return second


async def try_again(user: User, second: User) -> None:
    """Stop the run of one tab, and repeat the message of the other."""
    await user.press("Stop")
    await user.reads("You stopped this answer.")
    await second.press("Try again")
    await second.reads("hello world, hello world,")
    await expect(second.messages).to_have_text(["stream 1", "wait 60", "stream 2"])
    await expect(second.conversation.get_by_role("alert")).to_have_count(0)


@over_both
async def test_a_busy_thread_is_an_alert_in_words_and_can_be_tried_again_after_what_was_said_there(user: User) -> None:
    await try_again(user, await say_to_busy_thread(user))


@over_both
async def test_a_message_that_was_refused_stays_when_its_thread_is_loaded_again(user: User) -> None:
    second = await say_to_busy_thread(user)
    await second.page.evaluate("window.dispatchEvent(new Event('focus'))")
    await expect(second.messages).to_have_text(["stream 1", "wait 60", "stream 2Not sent"])
    await second.page.get_by_role("navigation").get_by_text("stream 1", exact=True).click()
    await expect(second.conversation.get_by_role("alert")).to_contain_text("THREAD_BUSY")
    await try_again(user, second)


@over_both
async def test_a_message_that_is_too_large_is_not_sent_and_the_page_says_so(user: User) -> None:
    await user.say("x" * 21_000)
    await expect(user.page.get_by_role("alert")).to_contain_text("The message is too large by 6.1 KB.")
    await expect(user.composer).to_have_value("x" * 21_000)
    await user.say("stream 2")
    await user.reads("hello world, hello world,")


@over_both
async def test_a_message_that_the_server_finds_too_large_stays_and_the_thread_goes_on(user: User) -> None:
    await user.page.route("**/capabilities", lambda route: route.fulfill(json={}))
    await user.page.reload()
    await user.reads("hello world,")
    await user.say("x" * 21_000)
    alert = user.conversation.get_by_role("alert")
    await expect(alert).to_contain_text("PAYLOAD_TOO_LARGE")
    await expect(alert).to_contain_text("The body has more than 20000 bytes.")
    await user.is_done()
    await expect(user.messages.last).to_contain_text("Not sent: The body has more than 20000 bytes.")
    await user.say("stream 2")
    await user.reads("hello world, hello world,")
