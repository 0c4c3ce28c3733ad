"""A refused message is an alert in words, whichever status and transport the refusal comes by."""

from collections.abc import AsyncIterator, Iterator

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
async def user(visit: Visit, refusing: str) -> AsyncIterator[User]:
    """A user with a thread in which one answer has been given. The browser reports each status of a refusal."""
    user = await visit(refusing)
    await user.say("stream 1")
    await user.is_done()
    yield user
    await user.page.close()  # nothing is written to its console afterwards
    assert [complaint for complaint in user.complaints if "Failed to load resource" not in complaint] == []
    user.complaints.clear()


@over_both
async def test_a_busy_thread_is_an_alert_in_words_and_can_be_tried_again(user: User) -> None:
    second = await user.open_tab(user.page.url)
    await second.reads("hello world,")
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    await second.say("stream 2")
    alert = second.conversation.get_by_role("alert")
    await expect(alert).to_contain_text("Another run is active on this thread.")
    await expect(alert).to_contain_text("THREAD_BUSY")
    await second.is_done()
    await user.press("Stop")
    await user.reads("You stopped this answer.")
    await second.press("Try again")
    await second.reads("hello world, hello world,")
    await expect(alert).to_have_count(0)


@over_both
async def test_a_message_that_is_too_large_is_an_alert_in_words(user: User) -> None:
    await user.say("x" * 21_000)
    alert = user.conversation.get_by_role("alert")
    await expect(alert).to_contain_text("PAYLOAD_TOO_LARGE")
    await expect(alert).to_contain_text("The body has more than 20000 bytes.")
    await user.is_done()
