"""Decisions of the user: approvals, and the tools of the page."""

import pytest
from playwright.async_api import expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import PHONE

pytestmark = [pytest.mark.asyncio(loop_scope="package"), over_both]


async def test_an_approved_call_is_run(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    card = user.page.get_by_role("region", name="Approval of calculate")
    await expect(card).to_contain_text("cost: sums cost money")
    await expect(user.call("calculate")).to_contain_text("Waiting for you")
    await card.get_by_role("button", name="Allow").click()
    await user.reads("The result of calculate is 42.")
    await expect(card).to_have_count(0)


async def test_a_call_is_approved_with_edited_arguments(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.press("Edit")
    await expect(user.page.get_by_label("Expression")).to_have_value("6*7")
    await user.page.get_by_label("Expression").fill("6*8")
    await user.press("Allow with these")
    await user.reads("The result of calculate is 48.")


async def test_arguments_are_edited_as_json_and_wrong_ones_do_not_use_the_approval_up(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.press("Edit")
    await user.press("JSON")
    arguments = user.page.get_by_label("Arguments as JSON")
    alert = user.call("calculate").get_by_role("alert")
    for text, problem in (
        ("6*8", "The arguments must be a JSON object."),
        ('{"expression": 6}', "expression must be a text."),
        ('{"expression": "6", "sum": 1}', "sum is not allowed here."),
        ("{}", "expression is required."),
    ):
        await arguments.fill(text)
        await user.press("Allow with these")
        await expect(alert).to_have_text(problem)
    await user.press("Back")
    await expect(alert).to_have_count(0)
    await user.press("Edit")
    await user.press("JSON")
    await arguments.fill('{"expression": "6*8"}')
    await user.press("JSON")
    await expect(user.page.get_by_label("Expression")).to_have_value("6*8")
    await user.press("Allow with these")
    await user.reads("The result of calculate is 48.")


async def test_lines_of_an_argument_are_edited_as_lines(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say(r'call calculate {"expression": "(6\n*7)"}')
    await user.press("Edit")
    expression = user.page.get_by_role("textbox", name="Expression")
    await expect(expression).to_have_value("(6\n*7)")
    await expression.fill("(6\n*8)")
    await user.press("Allow with these")
    await user.reads("The result of calculate is 48.")


async def test_a_decision_is_shown_with_both_versions_also_after_the_page_was_loaded_again(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.press("Edit")
    await user.page.get_by_label("Expression").fill("6*8")
    await user.press("Allow with these")
    await user.is_done()
    call = user.call("calculate")
    for is_loaded_again in (False, True):
        if is_loaded_again:
            await user.page.reload()
        await expect(call.locator(".call-decision")).to_have_text("Approved by you, edited expression: 6*7 6*8")
        await expect(call.locator(".call-arguments")).to_have_text('{"expression":"6*8"}')
        await call.locator(".call-head").click()
        await expect(call.get_by_role("group", name="Arguments as asked")).to_contain_text("6*7")
        await expect(call.get_by_role("group", name="Arguments as run")).to_contain_text("6*8")
    await user.say("calculate 1+1")
    await user.press("Allow")
    await user.is_done()
    await expect(user.call("calculate").locator(".call-decision")).to_have_text("Approved by you")


async def test_a_call_is_denied_with_a_reason(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.press("Deny")
    await user.page.get_by_label("Reason").fill("too dear")
    await user.press("Deny")
    await user.reads("the user denied this call: too dear")
    await expect(user.call("calculate").locator(".call-phase")).to_have_text("Denied")
    await user.page.reload()
    await expect(user.call("calculate").locator(".call-phase")).to_have_text("Denied")
    await expect(user.call("calculate").locator(".call-decision")).to_have_text("Denied by you: too dear")


async def test_a_message_that_is_written_while_a_call_waits_is_held_and_the_card_stays_in_its_call(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    waiting = user.page.locator(".waiting-bar")
    await expect(waiting).to_contain_text("calculate waits for your decision. A message is answered after it.")
    await user.say("stream 2")
    await user.reads("This message is answered once you have decided.")
    await expect(user.call("calculate").get_by_role("region", name="Approval of calculate")).to_be_visible()
    await user.press("Show")
    await expect(user.page.get_by_role("region", name="Approval of calculate")).to_be_focused()
    await user.press("Allow")
    await user.is_done()
    await expect(waiting).to_have_count(0)
    await expect(user.messages).to_have_count(2)
    await expect(user.conversation.locator(".markdown")).to_have_count(1)


async def test_a_call_that_waits_is_not_decided_on_the_branch_of_an_edited_message(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.reads("Waiting for you")
    await user.say("stream 2")
    await user.reads("This message is answered once you have decided.")
    await user.messages.last.hover()
    await user.messages.last.get_by_role("button", name="Edit and send again").click()
    await user.page.get_by_label("Edit your message").fill("stream 1")
    await user.page.keyboard.press("Enter")
    await user.reads("hello world,")
    await user.is_done()
    phase = user.call("calculate").locator(".call-phase")
    await expect(phase).to_have_text("Not decided")
    await user.page.reload()
    await expect(phase).to_have_text("Not decided")
    await user.press("Version before")
    await expect(phase).to_have_text("Waiting for you")


async def test_a_decision_in_another_tab_is_shown_where_it_is_given_again(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await user.reads("Waiting for you")
    other = await user.open_tab(user.page.url)
    await other.reads("Waiting for you")
    await user.press("Deny")
    await user.press("Deny")
    await user.is_done()
    await other.press("Allow")
    await expect(other.call("calculate").locator(".call-decision")).to_have_text("Denied by you")


async def test_an_approval_still_waits_after_the_page_was_loaded_again(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    await expect(user.page.get_by_role("region", name="Approval of calculate")).to_be_visible()
    await user.page.reload()
    await user.press("Allow")
    await user.reads("The result of calculate is 42.")


async def test_two_calls_are_answered_together(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say('call calculate {"expression": "1+1"}\ncall calculate {"expression": "2+2"}')
    cards = user.page.get_by_role("region", name="Approval of calculate")
    await expect(cards).to_have_count(2)
    await expect(cards.first).to_be_focused()
    await cards.first.get_by_role("button", name="Allow").click()
    await expect(cards).to_have_count(1)
    await expect(user.conversation.locator(".call-decided")).to_contain_text("Allowed, sent when all are decided")
    await cards.first.get_by_role("button", name="Allow").click()
    await user.is_done()
    await expect(user.conversation.locator(".call-done")).to_have_count(2)


async def test_a_decision_is_kept_while_a_message_is_held_and_is_sent_with_the_others(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say('call calculate {"expression": "1+1"}\ncall calculate {"expression": "2+2"}')
    cards = user.page.get_by_role("region", name="Approval of calculate")
    await cards.first.get_by_role("button", name="Deny").click()
    await user.page.get_by_label("Reason").fill("too dear")
    await cards.first.get_by_role("button", name="Deny").click()
    decided = user.conversation.locator(".call-decided")
    await expect(decided).to_contain_text("Denied, sent when all are decided")
    await user.say("hello")
    await user.reads("This message is answered once you have decided.")
    await expect(decided).to_contain_text("Denied, sent when all are decided")
    await expect(cards).to_have_count(1)
    await user.press("Allow")
    await user.is_done()
    decisions = user.conversation.locator(".call-decision")
    await expect(decisions).to_have_text(["Denied by you: too dear", "Approved by you"])


async def test_the_focus_goes_to_the_next_question_and_then_to_the_text_field(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say('call calculate {"expression": "1+1"}\ncall calculate {"expression": "2+2"}')
    cards = user.page.get_by_role("region", name="Approval of calculate")
    await expect(cards.first).to_be_focused()
    await cards.first.get_by_role("button", name="Deny").press("Enter")
    await expect(cards.first.get_by_role("textbox")).to_be_focused()
    await user.page.keyboard.type("no")
    await user.page.keyboard.press("Enter")
    await expect(cards).to_have_count(1)
    await expect(cards).to_be_focused()
    await cards.get_by_role("button", name="Allow").press("Enter")
    await expect(user.composer).to_be_focused()
    await user.is_done()
    await expect(user.conversation.locator(".call-decision")).to_have_text(["Denied by you: no", "Approved by you"])


async def test_all_calls_are_allowed_at_once(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say("\n".join(f'call calculate {{"expression": "{number}+1"}}' for number in range(3)))
    await expect(user.page.locator(".waiting-bar")).to_contain_text("3 calls wait for your decision.")
    allow_all = user.page.get_by_role("button", name="Allow all")
    await user.page.get_by_role("button", name="Edit", exact=True).first.click()
    await expect(allow_all).to_be_disabled()
    await user.press("Back")
    await allow_all.click()
    await user.is_done()
    await expect(user.conversation.locator(".call-done")).to_have_count(3)


async def test_the_assistant_sets_the_theme_when_the_user_allows_it(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say('call set_theme {"theme": "dark"}')
    await user.press("Allow")
    await user.reads("The result of set_theme is The theme is dark now.")
    await expect(user.page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_the_assistant_asks_for_a_place(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say('call ask_place {"question": "Where are you?"}')
    form = user.page.get_by_role("form", name="Question about a place")
    await expect(form).to_contain_text("Where are you?")
    await form.get_by_label("Place").fill("Berlin")
    await form.get_by_role("button", name="Send").click()
    await user.reads("The result of ask_place is Berlin.")


async def test_the_assistant_may_not_set_the_theme(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say('call set_theme {"theme": "dark"}')
    await user.press("Deny")
    await user.page.get_by_label("Reason").fill("too dark")
    await user.press("Deny")
    await user.reads("The user denied this: too dark")
    await expect(user.page.locator("html")).not_to_have_attribute("data-theme", "dark")


async def test_the_assistant_is_not_told_the_place(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.say('call ask_place {"question": "Where are you?"}')
    await user.press("Rather not")
    await user.reads("The user did not want to say.")


async def test_the_first_of_two_approvals_is_in_view_on_a_phone(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True, is_mobile=True)
    await user.say('call calculate {"expression": "1+1"}\ncall calculate {"expression": "2+2"}')
    cards = user.page.get_by_role("region", name="Approval of calculate")
    await expect(cards).to_have_count(2)
    await expect(cards.first.get_by_role("heading")).to_be_in_viewport()
    buttons = user.page.locator(".waiting-bar").get_by_role("button")
    await expect(buttons).to_have_count(2)
    tops = [await button.evaluate("(button) => button.getBoundingClientRect().top") for button in await buttons.all()]
    assert tops[0] == tops[1]
