"""Keys, focus, screen readers, touch screens, themes, reduced motion, and axe-core's opinion."""

import asyncio

import pytest
from playwright.async_api import Locator, Route, expect

from agui_container import Settings, create_app
from tests.behaviour.server import serving
from tests.web.console.browser.conftest import Visit
from tests.web.console.driver import PHONE, POLICY, User, serve_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]

MOST_TABS = 40


async def tab_to(target: Locator, key: str = "Tab") -> None:
    for _ in range(MOST_TABS):
        await target.page.keyboard.press(key)
        if await target.and_(target.page.locator(":focus")).count() == 1:
            return
    raise AssertionError(f"{target} cannot be reached by {key}")


async def enter(user: User, name: str, key: str = "Tab") -> None:
    await tab_to(user.page.get_by_role("button", name=name, exact=True), key)
    await user.page.keyboard.press("Enter")


COMPOSED = """(area, key) => {
    area.dispatchEvent(new KeyboardEvent("keydown", { key, isComposing: true, bubbles: true, cancelable: true }));
}"""


async def test_messages_are_written_stopped_and_edited_with_keys(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    keyboard, told = user.page.keyboard, user.page.locator("[aria-live='polite']").last
    await keyboard.type("wait 60")
    await user.composer.evaluate(COMPOSED, "Enter")  # a key of an input method
    await keyboard.press("Shift+Enter")
    await expect(user.composer).to_have_value("wait 60\n")
    await keyboard.press("Enter")
    await user.reads("Waiting 60 s.")
    await expect(told).to_have_text("The assistant is answering.")
    await user.composer.evaluate(COMPOSED, "Escape")
    await expect(user.page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    await keyboard.press("Escape")
    await user.reads("You stopped this answer.")
    await expect(told).to_have_text("The answer was stopped.")
    await keyboard.press("ArrowUp")
    await expect(user.page.get_by_label("Edit your message")).to_be_focused()
    await keyboard.press("Control+a")
    await keyboard.type("stream 1")
    await keyboard.press("Enter")
    await user.reads("hello world,")
    await user.is_done()
    await expect(told).to_have_text("The assistant says: hello world,")
    await keyboard.press("Control+Shift+O")
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()
    await expect(user.composer).to_be_focused()


async def test_screen_readers_are_told_the_text_of_an_answer_and_not_its_markdown(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    told = user.page.locator("[aria-live='polite']").last
    await user.finishes("markdown")
    await expect(told).to_contain_text("The assistant says: Here is bold text, a link and code.")
    await expect(told).not_to_contain_text("**")
    await user.say("ask")
    await expect(told).to_have_text("The assistant waits for your answer.")


async def test_panels_answers_and_threads_are_used_with_keys(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    keyboard = user.page.keyboard
    search = user.page.get_by_label("Search threads")
    await keyboard.type("stream 1")
    await keyboard.press("Enter")
    await user.reads("hello world,")
    await user.is_done()
    await enter(user, "Bad answer", "Shift+Tab")
    form = user.page.get_by_role("form", name="Feedback")
    await tab_to(form.get_by_label("incomplete"))
    await keyboard.press("Space")
    await tab_to(form.get_by_label("Notes"))
    await keyboard.type("too short")
    await enter(user, "Send feedback")
    await expect(form).to_have_count(0)
    await expect(user.page.get_by_role("button", name="Bad answer")).to_have_attribute("aria-pressed", "true")
    await keyboard.press("Control+i")
    await expect(user.page.get_by_role("complementary", name="Inspector")).to_be_visible()
    await tab_to(user.page.get_by_role("tab", name="Events"))
    await keyboard.press("ArrowRight")
    await expect(user.page.get_by_role("tab", name="Trace")).to_be_focused()
    await keyboard.press("?")
    await expect(user.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    await keyboard.press("Escape")
    await keyboard.press("Control+i")
    await keyboard.press("Control+Shift+O")
    await keyboard.press("Control+k")
    await keyboard.type("stream")
    await keyboard.press("Enter")
    await user.reads("hello world,")
    await search.press("Escape")
    await expect(search).to_have_value("")
    await keyboard.press("Control+k")
    await enter(user, "Delete stream 1")
    await enter(user, "Cancel")
    await expect(user.page.get_by_role("button", name="Delete stream 1")).to_be_focused()
    await enter(user, "Rename stream 1", "Shift+Tab")
    await expect(user.page.get_by_label("Title")).to_be_focused()
    await keyboard.press("Control+a")
    await keyboard.type("Greetings")
    await keyboard.press("Enter")
    await expect(user.items).to_have_text(["Greetings"])
    await expect(user.page.get_by_role("button", name="Greetings", exact=True)).to_be_focused()
    await enter(user, "Delete Greetings")
    await enter(user, "Delete")
    await expect(user.items).to_have_count(0)


async def test_an_approval_and_a_form_are_answered_with_keys(visit: Visit, assistant: str, scripted: str) -> None:
    user = await visit(assistant)
    await user.say("calculate 6*7")
    card = user.page.get_by_role("region", name="Approval of calculate")
    await expect(card).to_be_focused()
    await enter(user, "Edit")
    await expect(card.get_by_label("Expression")).to_be_focused()
    await enter(user, "Back")
    await expect(card).to_be_focused()
    await enter(user, "Allow")
    await user.reads("The result of calculate is 42.")
    other = await visit(scripted)
    keyboard = other.page.keyboard
    await other.say("ask")
    form = other.page.get_by_role("form", name="Where to?")
    await expect(form).to_be_focused()
    await tab_to(form.get_by_label("City"))
    await keyboard.type("Lisbon")
    await tab_to(form.get_by_label("Count (optional)"))
    await keyboard.press("ArrowUp")
    await tab_to(form.get_by_label("Speed"))
    await keyboard.type("fast")
    await tab_to(form.get_by_label("Street"))
    await keyboard.type("Rua A")
    await keyboard.press("Enter")
    for part in ("'city': 'Lisbon'", "'count': 3", "'speed': 'fast'", "{'street': 'Rua A'}"):
        await other.reads(part)


async def test_a_question_leaves_the_focus_in_a_message_that_is_being_written(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    is_written = asyncio.Event()

    async def hold(route: Route) -> None:
        await is_written.wait()
        await route.continue_()

    await user.page.route("**/invocations", hold)
    await user.say("calculate 6*7")
    await user.page.keyboard.type("and then")
    is_written.set()
    await expect(user.page.get_by_role("region", name="Approval of calculate")).to_be_visible()
    await user.page.keyboard.type(" this")
    await expect(user.composer).to_have_value("and then this")


async def test_a_phone_has_drawers_that_hold_the_focus_and_give_it_back(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True)
    opener = user.page.get_by_role("button", name="Threads", exact=True)
    inspector = user.page.get_by_role("complementary", name="Inspector")
    focused = user.page.locator(":focus")
    await expect(user.threads).to_be_hidden()
    await enter(user, "Threads", "Shift+Tab")
    await expect(user.threads.get_by_role("button", name="Close threads")).to_be_focused()
    for _ in range(MOST_TABS):
        await user.page.keyboard.press("Tab")
        assert await focused.and_(user.page.locator("main *")).count() == 0
    await user.page.keyboard.press("Escape")
    await expect(user.threads).to_be_hidden()
    await expect(opener).to_be_focused()
    await user.page.keyboard.press("Control+k")
    await expect(user.threads.get_by_label("Search threads")).to_be_focused()
    await enter(user, "New chat", "Shift+Tab")
    await expect(user.threads).to_be_hidden()
    await expect(user.composer).to_be_focused()
    await user.say("wait 60")
    await user.reads("Waiting 60 s.")
    await enter(user, "Inspector", "Shift+Tab")
    await tab_to(inspector.get_by_role("tab", name="Events"))
    await user.page.keyboard.press("Escape")
    await expect(inspector).to_have_count(0)
    await expect(user.page.get_by_role("button", name="Inspector", exact=True)).to_be_focused()
    await expect(user.page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    await user.page.keyboard.press("Escape")
    await user.reads("You stopped this answer.")


ONE_WORD = """(cell) => {
    const word = document.createRange();
    word.selectNodeContents(cell);
    return word.getClientRects().length;
}"""


async def test_nothing_is_wider_than_a_narrow_screen_and_words_stay_whole(visit: Visit, scripted: str) -> None:
    user = await visit(scripted, viewport={"width": 320, "height": 640})
    await user.finishes("wide", "markdown")
    await expect(user.call("mcp__documents__search_everything_and_everywhere")).to_contain_text("ms")
    scroller = user.conversation.locator("..")
    assert await scroller.evaluate("(frame) => frame.scrollWidth <= frame.clientWidth")
    assert await user.page.evaluate("document.scrollingElement.scrollWidth") <= 320
    assert await user.conversation.get_by_role("cell", name="wide").first.evaluate(ONE_WORD) == 1
    await user.press("Inspector")
    await expect(user.page.get_by_role("button", name="Close inspector")).to_be_in_viewport(ratio=1)


SMALL_TARGETS = """() =>
    [...document.querySelectorAll("button, select, summary, textarea, input")]
        .filter((each) => !each.closest("[inert]") && each.checkVisibility({ visibilityProperty: true }))
        .map((each) => (["checkbox", "radio"].includes(each.type) ? each.closest("label") : each))
        .filter((each) => Math.min(each.offsetWidth, each.offsetHeight) < 44)
        .map((each) => `${each.outerHTML.slice(0, 120)} ${each.offsetWidth}x${each.offsetHeight}`)
"""
"""Controls that are shown and are too small for a finger. The label of a box counts as a part of it."""


async def has_large_targets(user: User) -> None:
    assert await user.page.evaluate(SMALL_TARGETS) == []


async def test_every_control_of_a_touch_screen_is_large_and_enter_begins_a_line(visit: Visit, scripted: str) -> None:
    with serve_page(AGUI_TOOL_POLICY=POLICY, AGUI_MODELS="spare=offline") as server:
        user = await visit(server.url, viewport=PHONE, has_touch=True, is_mobile=True)
        await expect(user.page.get_by_label("Model")).to_be_visible()
        await has_large_targets(user)
        await user.page.keyboard.type("calculate 6*7")
        await user.page.keyboard.press("Enter")
        await expect(user.composer).to_have_value("calculate 6*7\n")
        await user.press("Send")
        await user.press("Edit")
        await has_large_targets(user)
        await user.press("JSON")
        await has_large_targets(user)
        await user.press("Allow with these")
        await user.reads("The result of calculate is 42.")
        await user.finishes("think about rain")
        await user.page.get_by_text("Thought", exact=True).click()
        await user.page.get_by_role("button", name="Edit and send again").first.click()
        await has_large_targets(user)
        await user.page.get_by_role("button", name="Threads", exact=True).tap()
        await user.press("Rename calculate 6*7")
        await has_large_targets(user)
        await user.press("Close threads")
        await user.press("Inspector")
        for tab in ("Events", "Trace", "State", "Run", "Server", "Replay"):
            await user.page.get_by_role("tab", name=tab).click()
            await has_large_targets(user)
        for _ in range(2):
            await user.page.get_by_label("Runs").get_by_role("button").first.click()
            await expect(user.page.get_by_role("complementary", name="Inspector")).to_have_count(0)
            await expect(user.page.get_by_role("group", name="Replay")).to_be_visible()
            await has_large_targets(user)
            await user.press("Close replay")
            await user.inspect("Replay")
        await user.page.close()
    other = await visit(scripted, viewport=PHONE, has_touch=True, is_mobile=True)
    await other.finishes("hello")
    await other.press("Bad answer")
    await has_large_targets(other)
    await other.finishes("state")
    await other.inspect("State")
    await has_large_targets(other)
    await other.press("Close inspector")
    await other.say("ask")
    await expect(other.page.get_by_role("form", name="Where to?")).to_be_visible()
    await has_large_targets(other)


async def test_themes_stay_a_pale_accent_is_readable_and_reduced_motion_is_kept(visit: Visit) -> None:
    settings = Settings(console_title="Tea & <Cake>", console_accent="#ffe14d")
    async with serving(create_app(None, settings)) as address:
        user = await visit(address, color_scheme="light", reduced_motion="reduce")
        await expect(user.page).to_have_title("Tea & <Cake>")
        await expect(user.page.get_by_role("heading", name="Tea & <Cake>")).to_be_visible()
        await user.composer.fill("hello")
        send = user.page.get_by_role("button", name="Send", exact=True)
        await expect(send).to_have_css("background-color", "rgb(255, 225, 77)")
        await expect(send).to_have_css("color", "rgb(17, 17, 19)")
        assert await user.violations() == []
        await user.say("wait 60")
        dots = user.page.locator(".working span").first
        await expect(dots).to_have_css("animation-iteration-count", "1")
        await user.press("Stop")
        await user.press("Theme: system")
        await user.press("Theme: light")
        await user.page.reload()
        await expect(user.page.locator("html")).to_have_attribute("data-theme", "dark")
        await expect(user.page.locator("body")).to_have_css("background-color", "rgb(22, 22, 24)")
        await user.page.close()


async def test_axe_finds_nothing_in_a_conversation_with_calls_an_approval_and_the_inspector(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    assert await user.violations() == []
    await user.finishes("think about rain")
    await user.press("Good answer")
    await user.finishes("delegate what time is it")
    await user.call("current_time").get_by_role("button").click()
    await user.say("calculate 6*7")
    await expect(user.page.get_by_role("region", name="Approval of calculate")).to_be_visible()
    await user.press("Inspector")
    for tab in ("Trace", "State", "Run", "Replay", "Server", "Events"):
        await user.page.get_by_role("tab", name=tab).click()
        assert await user.violations() == [], tab
    await user.press("Edit")
    await user.press("JSON")
    await user.page.get_by_label("Arguments as JSON").fill("6*8")
    await user.press("Allow with these")
    await expect(user.page.get_by_role("alert")).to_be_visible()
    assert await user.violations() == []


async def test_axe_finds_nothing_in_markdown_forms_failures_and_replays(
    visit: Visit, scripted: str, assistant: str
) -> None:
    user = await visit(scripted)
    await user.finishes("markdown", "steps")
    await expect(user.conversation.locator(".hljs-keyword").first).to_be_visible()
    await user.say("ask")
    await expect(user.page.get_by_role("form", name="Where to?")).to_be_visible()
    assert await user.violations() == []
    other = await visit(assistant)
    await other.say("fail")
    await expect(other.page.get_by_role("alert")).to_contain_text("MODEL_ERROR")
    await other.inspect("Replay")
    await other.page.get_by_label("Runs").get_by_role("button").click()
    await expect(other.page.get_by_role("group", name="Replay")).to_be_visible()
    assert await other.violations() == []


async def test_axe_finds_nothing_in_feedback_and_dialogs_and_on_a_phone(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.finishes("stream 1")
    await user.press("Bad answer")
    await user.page.get_by_role("form", name="Feedback").get_by_label("other").check()
    await user.items.hover()
    await user.press("Rename stream 1")
    await expect(user.page.get_by_label("Title")).to_be_focused()
    assert await user.violations() == []
    await user.page.keyboard.press("Escape")
    await expect(user.page.get_by_label("Title")).to_have_count(0)
    await user.items.hover()
    await user.press("Delete stream 1")
    await expect(user.page.get_by_role("dialog", name="Delete “stream 1”?")).to_be_visible()
    assert await user.violations() == []
    await user.page.keyboard.press("Escape")
    await user.page.keyboard.press("?")
    await expect(user.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert await user.violations() == []
    other = await visit(assistant, viewport=PHONE, has_touch=True)
    await other.finishes("stream 1")
    assert await other.violations() == []
    await other.press("Threads")
    await expect(other.threads.get_by_role("button", name="stream 1", exact=True)).to_be_visible()
    assert await other.violations() == []
