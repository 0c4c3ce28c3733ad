"""Questions of the agent that are forms or links."""

import pytest
from playwright.async_api import expect

from tests.console.conftest import Visit, over_both

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]


async def test_a_form_is_made_of_the_response_schema(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("ask")
    form = user.page.get_by_role("form", name="Where to?")
    await form.get_by_role("button", name="Send").click()
    await expect(form.get_by_role("alert")).to_have_text("City is required.")
    city = form.get_by_label("City")
    await expect(city).to_have_accessible_description("City is required.")
    await city.fill("Lisbon")
    count = form.get_by_label("Count (optional)")
    await expect(count).to_have_value("2")
    await count.fill("0")
    await form.get_by_label("Speed").select_option("fast")
    await form.get_by_label("Gift").check()
    await form.get_by_role("group", name="Address").get_by_label("Street").fill("Rua A")
    await form.get_by_label("Tags (optional)").fill("red\nblue")
    await form.get_by_role("button", name="Send").click()
    await expect(form.get_by_role("alert")).to_have_text("Count must be at least 1.")
    await expect(count).to_have_accessible_description("Count must be at least 1.")
    await count.fill("3")
    await form.get_by_role("button", name="Send").click()
    await user.reads("You answered:")
    answered = user.conversation.get_by_role("group", name="Where to?")
    await expect(answered.locator("dd").first).to_have_text("Lisbon")
    for part in (
        "'city': 'Lisbon'",
        "'count': 3",
        "'speed': 'fast'",
        "'gift': True",
        "{'street': 'Rua A'}",
        "['red', 'blue']",
    ):
        await user.reads(part)


async def test_a_form_is_made_of_the_schema_of_a_model(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("ask_by_model")
    form = user.page.get_by_role("form", name="Which?")
    await expect(form.get_by_label("Kind")).to_have_value("order")
    await form.get_by_label("Email").fill("soon")
    await form.get_by_role("button", name="Send").click()
    await expect(form.get_by_role("alert")).to_have_text("Email must be an email address.")
    await form.get_by_label("Email").fill("a@example.com")
    await form.get_by_label("Gift").check()
    await form.get_by_role("button", name="Send").click()
    await expect(form.get_by_role("alert")).to_have_text("Card is required.")
    await form.get_by_label("Gift").uncheck()
    await form.get_by_role("button", name="Send").click()
    await user.reads("You answered: {'kind': 'order', 'note': None, 'email': 'a@example.com'}")


async def test_a_form_that_is_put_off_is_answered_as_cancelled(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("ask")
    form = user.page.get_by_role("form", name="Where to?")
    await form.get_by_role("button", name="Not now").click()
    await user.reads("Nothing was sent: cancelled.")
    await expect(form).to_have_count(0)


async def test_a_question_that_a_message_goes_on_without_is_kept_as_not_answered(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("ask")
    await expect(user.page.locator(".waiting-bar")).to_contain_text("A message goes on without it.")
    await user.say("hello")
    await user.reads("Hello.")
    await expect(user.page.get_by_role("form", name="Where to?")).to_have_count(0)
    question = user.conversation.get_by_role("group", name="Where to?")
    await expect(question).to_contain_text("Not answered")
    await user.is_done()
    await user.page.reload()
    await expect(question).to_contain_text("Not answered")


async def test_answered_forms_keep_question_and_answer_after_the_page_was_loaded_again(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted)
    await user.say("consent")
    await user.press("Not now")
    await user.reads("Nothing was sent: cancelled.")
    await user.say("ask_by_model")
    form = user.page.get_by_role("form", name="Which?")
    await form.get_by_label("Email").fill("a@example.com")
    await form.get_by_role("button", name="Send").click()
    await user.reads("You answered: {'kind': 'order'")
    await user.is_done()
    put_off = user.conversation.get_by_role("group", name="Open the link and allow the access.")
    answered = user.conversation.get_by_role("group", name="Which?")
    for is_loaded_again in (False, True):
        if is_loaded_again:
            await user.page.reload()
        await expect(put_off).to_contain_text("Not answered")
        await expect(answered.locator("dt")).to_have_text(["kind", "note", "email"])
        await expect(answered.locator("dd")).to_have_text(["order", "null", "a@example.com"])
        await expect(answered.locator("xpath=following-sibling::*[1]")).to_contain_text("You answered:")


async def test_a_link_that_asks_for_consent_is_shown_and_the_answer_continues(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("consent")
    link = user.page.get_by_role("link", name="Open login.example")
    await expect(link).to_have_attribute("href", "https://login.example/authorize")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await user.press("Continue")
    await user.reads("You answered: {}")


async def test_only_addresses_of_web_pages_become_links(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("forged_consent")
    form = user.page.get_by_role("form", name="Open the link and allow the access.")
    await expect(form).to_be_visible()
    await expect(form.get_by_role("link")).to_have_count(0)


async def test_the_beginning_of_a_question_is_in_view_and_then_the_answer_to_it(visit: Visit, scripted: str) -> None:
    user = await visit(scripted, viewport={"width": 390, "height": 560}, has_touch=True)
    await user.say("ask")
    form = user.page.get_by_role("form", name="Where to?")
    await expect(form.get_by_role("heading")).to_be_in_viewport()
    await form.get_by_role("button", name="Not now").click()
    await user.is_done()
    await expect(user.conversation.locator(".markdown")).to_be_in_viewport()
