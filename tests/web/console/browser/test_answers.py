"""Questions to the user: approvals, forms, consent, and the tools of the page."""

import pytest
from playwright.async_api import expect

from tests.web.console.browser.conftest import Visit, over_both

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]

TWO_CALLS = 'call calculate {"expression": "1+1"}\ncall calculate {"expression": "2+2"}'


@over_both
async def test_a_call_waits_for_approval_also_after_a_reload_and_is_run(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    card = user.page.get_by_role("region", name="Approval of calculate")
    await expect(card).to_contain_text("cost: sums cost money")
    await user.page.reload()
    await expect(user.call("calculate")).to_contain_text("Waiting for you")
    await card.get_by_role("button", name="Allow").click()
    await user.reads("The result of calculate is 42.")
    await expect(card).to_have_count(0)
    await user.is_done()
    await expect(user.call("calculate").locator(".call-decision")).to_have_text("Approved by you")


async def test_arguments_are_edited_and_wrong_ones_do_not_use_the_approval_up(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say(r'call calculate {"expression": "6\n*7"}')
    await user.press("Edit")
    expression = user.page.get_by_role("textbox", name="Expression")
    await expect(expression).to_have_value("6\n*7")  # its lines are edited as lines
    await user.press("JSON")
    arguments = user.page.get_by_label("Arguments as JSON")
    call = user.call("calculate")
    await arguments.fill('{"expression": 6}')
    await user.press("Allow with these")
    await expect(call.get_by_role("alert")).to_have_text("expression must be a text.")
    await user.press("Back")
    await expect(call.get_by_role("alert")).to_have_count(0)
    await user.press("Edit")
    await expression.fill("6*8")
    await user.press("Allow with these")
    await user.reads("The result of calculate is 48.")
    await user.is_done()
    for is_loaded_again in (False, True):
        if is_loaded_again:
            await user.page.reload()
        await expect(call.locator(".call-decision")).to_contain_text("Approved by you, edited expression: 6")
        await expect(call.locator(".call-arguments")).to_have_text('{"expression":"6*8"}')
        await call.locator(".call-head").click()
        await expect(call.get_by_role("group", name="Arguments as asked")).to_contain_text("*7")
        await expect(call.get_by_role("group", name="Arguments as run")).to_contain_text("6*8")


async def test_a_message_is_held_while_a_call_waits_and_its_edited_version_goes_on_without_the_call(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    waiting, phase = user.page.locator(".waiting-bar"), user.call("calculate").locator(".call-phase")
    card = user.call("calculate").get_by_role("region", name="Approval of calculate")
    await expect(waiting).to_contain_text("calculate waits for your decision. A message is answered after it.")
    await user.say("stream 2")
    await user.reads("This message is answered once you have decided.")
    await expect(card).to_be_visible()
    await user.press("Show")
    await expect(card).to_be_focused()
    await user.messages.last.hover()
    await user.messages.last.get_by_role("button", name="Edit and send again").click()
    await user.page.get_by_label("Edit your message").fill("stream 1")
    await user.page.keyboard.press("Enter")
    await user.reads("hello world,")
    await user.is_done()
    await expect(phase).to_have_text("Not decided")
    await user.page.reload()
    await expect(phase).to_have_text("Not decided")
    await user.press("Version before")
    await expect(phase).to_have_text("Waiting for you")
    await user.press("Allow")
    await user.is_done()
    await expect(waiting).to_have_count(0)
    await expect(user.messages).to_have_count(2)
    await expect(user.conversation.locator(".markdown")).to_have_count(1)


@pytest.mark.parametrize(
    ("presses", "said", "decided"), [(["Deny", "Deny"], [], "denied"), (["Allow"], ["stream 1"], "approved")]
)
async def test_a_call_that_another_tab_has_decided_says_so_where_it_is_decided_again(
    visit: Visit, assistant: str, presses: list[str], said: list[str], decided: str
) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.reads("Waiting for you")
    other = await user.open_tab(user.page.url)
    await other.reads("Waiting for you")
    for name in presses:
        await user.press(name)
    await user.is_done()
    await user.finishes(*said)
    await other.press("Allow")
    decision = other.call("calculate").locator(".call-decision")
    await expect(decision).to_have_text(f"Already decided by you in another tab or client: {decided}")


async def test_decisions_on_several_calls_are_sent_together_or_given_at_once(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say(TWO_CALLS)
    cards = user.page.get_by_role("region", name="Approval of calculate")
    await expect(cards.first).to_be_focused()
    await cards.first.get_by_role("button", name="Deny").press("Enter")
    await expect(cards.first.get_by_role("textbox")).to_be_focused()
    await user.page.keyboard.type("too dear")
    await user.page.keyboard.press("Enter")
    decided = user.conversation.locator(".call-decided")
    await expect(decided).to_contain_text("Denied, sent when all are decided")
    await expect(cards).to_have_count(1)
    await expect(cards).to_be_focused()
    await user.say("hello")
    await user.reads("This message is answered once you have decided.")
    await expect(decided).to_contain_text("Denied, sent when all are decided")
    await cards.get_by_role("button", name="Allow").press("Enter")
    await expect(user.composer).to_be_focused()
    await user.is_done()
    decisions = user.conversation.locator(".call-decision")
    await expect(decisions).to_have_text(["Denied by you: too dear", "Approved by you"])
    await user.press("New chat")
    await user.say(TWO_CALLS)
    await expect(user.page.locator(".waiting-bar")).to_contain_text("2 calls wait for your decision.")
    allow_all = user.page.get_by_role("button", name="Allow all")
    await user.page.get_by_role("button", name="Edit", exact=True).first.click()
    await expect(allow_all).to_be_disabled()
    await user.press("Back")
    await allow_all.click()
    await user.is_done()
    await expect(user.conversation.locator(".call-done")).to_have_count(2)


async def test_the_assistant_sets_the_theme_and_asks_for_a_place_if_the_user_lets_it(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant, color_scheme="light")
    root = user.page.locator("html")
    await user.say('call set_theme {"theme": "dark"}')
    await user.press("Deny")
    await user.page.get_by_label("Reason").fill("too dark")
    await user.press("Deny")
    await user.reads("The user denied this: too dark")
    await user.is_done()
    await expect(root).not_to_have_attribute("data-theme", "dark")
    await user.say('call set_theme {"theme": "dark"}')
    await user.press("Allow")
    await user.reads("The result of set_theme is The theme is dark now.")
    await user.is_done()
    await expect(root).to_have_attribute("data-theme", "dark")
    await user.say('call ask_place {"question": "Where are you?"}')
    form = user.page.get_by_role("form", name="Question about a place")
    await expect(form).to_contain_text("Where are you?")
    await form.get_by_label("Place").fill("Berlin")
    await form.get_by_role("button", name="Send").click()
    await user.reads("The result of ask_place is Berlin.")


@over_both
async def test_a_form_is_made_of_the_response_schema_and_its_answer_is_kept(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("ask")
    form = user.page.get_by_role("form", name="Where to?")
    send = form.get_by_role("button", name="Send")
    await send.click()
    await expect(form.get_by_role("alert")).to_have_text("City is required.")
    await expect(form.get_by_label("City")).to_be_focused()
    await expect(form.get_by_label("City")).to_have_accessible_description("City is required.")
    await form.get_by_label("City").fill("Lisbon")
    count = form.get_by_label("Count (optional)")
    await expect(count).to_have_value("2")
    await count.fill("0")
    await form.get_by_label("Speed").select_option("fast")
    await form.get_by_label("Gift").check()
    await form.get_by_role("group", name="Address").get_by_label("Street").fill("Rua A")
    await form.get_by_label("Tags (optional)").fill("red\nblue")
    await send.click()
    await expect(form.get_by_role("alert")).to_have_text("Count must be at least 1.")
    await count.fill("3")
    await send.click()
    for part in (
        "You answered:",
        "'city': 'Lisbon'",
        "'count': 3",
        "'speed': 'fast'",
        "'gift': True",
        "{'street': 'Rua A'}",
        "['red', 'blue']",
    ):
        await user.reads(part)
    await user.is_done()
    answered = user.conversation.get_by_role("group", name="Where to?")
    for is_loaded_again in (False, True):
        if is_loaded_again:
            await user.page.reload()
        await expect(answered.locator("dd").first).to_have_text("Lisbon")
        await expect(answered.locator("xpath=following-sibling::*[1]")).to_contain_text("You answered:")


async def test_consent_is_a_link_of_a_web_page_and_nothing_else(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("forged_consent")
    form = user.page.get_by_role("form", name="Open the link and allow the access.")
    await expect(form).to_be_visible()
    await expect(form.get_by_role("link")).to_have_count(0)
    await user.press("Not now")
    await user.is_done()
    await user.say("consent")
    link = form.get_by_role("link", name="Open login.example")
    await expect(link).to_have_attribute("href", "https://login.example/authorize")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await user.press("Continue")
    await user.reads("You answered: {}")
