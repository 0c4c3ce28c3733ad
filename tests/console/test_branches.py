"""Other answers and edited messages: the former ones stay on branches of the thread."""

import pytest
from playwright.async_api import Route, expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import NO_NETWORK, User

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]


async def versions(user: User, text: str) -> None:
    """Wait until the first message says which of its versions is shown."""
    await expect(user.messages.first.get_by_role("group", name="Versions")).to_have_text(text)


async def test_an_answer_that_is_asked_for_again_stays_beside_the_new_one(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 3")
    await user.is_done()
    first = user.page.url
    await user.press("Ask again")
    await versions(user, "2/2")
    await user.is_done()
    await expect(user.conversation.locator(".markdown")).to_have_text(["hello world, hello world, hello world,"])
    await user.press("Version before")
    await versions(user, "1/2")
    assert user.page.url == first
    await user.press("Next version")
    await versions(user, "2/2")
    await user.page.reload()
    await versions(user, "2/2")


async def test_an_edited_message_keeps_all_later_turns_on_the_branch_before(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    await user.say("think about rain")
    await user.reads("I have thought about rain.")
    await user.is_done()
    await user.messages.first.hover()
    await user.conversation.get_by_role("button", name="Edit and send again").first.click()
    await user.page.get_by_label("Edit your message").fill("stream 2")
    await user.page.keyboard.press("Enter")
    await user.reads("hello world, hello world,")
    await user.is_done()
    await expect(user.messages).to_have_count(1)
    await user.say("hi")
    await user.is_done()
    await user.page.reload()
    await expect(user.messages).to_have_count(2)
    await versions(user, "2/2")
    await user.press("Version before")
    await user.reads("I have thought about rain.")
    await expect(user.messages).to_have_count(2)


async def test_the_branches_of_a_conversation_are_one_item_of_the_list(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    items = user.page.get_by_role("navigation", name="Threads").get_by_role("listitem")
    await user.say("stream 1")
    await user.is_done()
    await user.press("Ask again")
    await versions(user, "2/2")
    await user.is_done()
    await user.press("Ask again")
    await versions(user, "3/3")
    await user.is_done()
    await expect(items).to_have_text(["stream 1"])
    await items.hover()
    await user.press("Rename stream 1")
    await user.page.get_by_label("Title").fill("Greetings")
    await user.page.get_by_label("Title").press("Enter")
    await user.press("Version before")
    await versions(user, "2/3")
    await expect(items).to_have_text(["Greetings"])
    await user.press("Fork from here")
    await expect(items).to_have_text(["Greetings", "Greetings"])
    await user.press("New chat")
    for rest in (1, 0):
        await items.first.hover()
        await items.first.get_by_role("button", name="Delete Greetings").click()
        await user.press("Delete")
        await expect(items).to_have_count(rest)
    await user.page.reload()
    await expect(user.page.get_by_text("Your chats will be here.")).to_be_visible()


async def test_a_branch_that_cannot_be_made_loses_nothing(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()

    async def refuse(route: Route) -> None:
        await route.abort("connectionrefused")

    await user.page.route("**/fork", refuse)
    await user.press("Ask again")
    await expect(user.conversation.get_by_role("alert")).to_contain_text("The server cannot be reached.")
    await user.reads("hello world,")
    await expect(user.messages).to_have_count(1)
    user.expect_complaints(*NO_NETWORK)


async def test_a_question_that_is_asked_again_is_without_the_former_answer(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("ask")
    await user.press("Not now")
    await user.reads("Not answered")
    await user.press("Ask again")
    await versions(user, "2/2")
    for is_loaded_again in (False, True):
        if is_loaded_again:
            await user.page.reload()
        await expect(user.page.get_by_role("form", name="Where to?")).to_be_visible()
        await expect(user.conversation.get_by_role("group", name="Where to?")).to_have_count(0)
    await user.press("Version before")
    await user.reads("Not answered")
