"""Themes, keys, screen readers, phones, reduced motion."""

import asyncio
import re

import pytest
from playwright.async_api import Locator, Route, expect

from agui_container import Settings, create_app
from tests.behaviour.server import serving
from tests.console.conftest import Visit, over_both
from tests.console.driver import PHONE, User, release

pytestmark = pytest.mark.asyncio(loop_scope="package")

MOST_TABS = 40


async def tab_to(target: Locator, key: str = "Tab") -> None:
    """Press a key until an element has the focus."""
    for _ in range(MOST_TABS):
        await target.page.keyboard.press(key)
        if await target.and_(target.page.locator(":focus")).count() == 1:
            return
    raise AssertionError(f"{target} cannot be reached by {key}")


async def enter(user: User, name: str, key: str = "Tab") -> None:
    """Go to a button by keys, and press it."""
    await tab_to(user.page.get_by_role("button", name=name, exact=True), key)
    await user.page.keyboard.press("Enter")


@over_both
async def test_messages_are_written_stopped_and_edited_with_keys(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    keyboard = user.page.keyboard
    await keyboard.type("wait 60")
    await keyboard.press("Shift+Enter")
    await expect(user.composer).to_have_value("wait 60\n")
    await keyboard.press("Enter")
    await user.reads("Waiting 60 s.")
    await keyboard.press("Escape")
    await user.reads("You stopped this answer.")
    await keyboard.press("ArrowUp")
    await expect(user.page.get_by_label("Edit your message")).to_be_focused()
    await keyboard.press("Control+a")
    await keyboard.type("stream 1")
    await keyboard.press("Enter")
    await user.reads("hello world,")
    await user.is_done()
    await keyboard.press("Control+Shift+O")
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()
    await expect(user.composer).to_be_focused()


COMPOSED = """(area, key) => {
    area.dispatchEvent(new KeyboardEvent("keydown", { key, isComposing: true, bubbles: true, cancelable: true }));
}"""


@over_both
async def test_keys_of_an_input_method_stop_and_send_nothing(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("slowly")
    await user.reads("word3 ")
    await user.composer.evaluate(COMPOSED, "Escape")
    await release(scripted)
    await user.reads("word39")
    await user.is_done()
    await user.composer.fill("half a word")
    await user.composer.evaluate(COMPOSED, "Enter")
    await expect(user.composer).to_have_value("half a word")
    await expect(user.messages).to_have_count(1)


async def test_panels_are_opened_with_keys(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    keyboard = user.page.keyboard
    await keyboard.press("Control+i")
    await expect(user.page.get_by_role("complementary", name="Inspector")).to_be_visible()
    await tab_to(user.page.get_by_role("tab", name="Events"))
    await keyboard.press("ArrowRight")
    await expect(user.page.get_by_role("tab", name="Trace")).to_be_focused()
    await keyboard.press("?")
    await expect(user.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    await keyboard.press("Escape")
    await keyboard.press("/")
    await expect(user.composer).to_be_focused()


async def test_an_answer_is_rated_and_forked_with_keys(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    keyboard = user.page.keyboard
    await keyboard.type("stream 1")
    await keyboard.press("Enter")
    await user.is_done()
    await user.reads("hello world,")
    await enter(user, "Bad answer", "Shift+Tab")
    form = user.page.get_by_role("form", name="Feedback")
    await tab_to(form.get_by_label("incomplete"))
    await keyboard.press("Space")
    await tab_to(form.get_by_label("Notes"))
    await keyboard.type("too short")
    await enter(user, "Send feedback")
    await expect(form).to_have_count(0)
    bad = user.page.get_by_role("button", name="Bad answer")
    await expect(bad).to_have_attribute("aria-pressed", "true")
    await enter(user, "Fork from here")
    items = user.page.get_by_role("navigation", name="Threads").get_by_role("listitem")
    await expect(items).to_have_count(2)


async def test_a_thread_is_found_renamed_and_deleted_with_keys(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    keyboard = user.page.keyboard
    await keyboard.type("stream 1")
    await keyboard.press("Enter")
    await user.is_done()
    await keyboard.press("Control+k")
    await expect(user.page.get_by_label("Search threads")).to_be_focused()
    await enter(user, "Rename stream 1")
    await expect(user.page.get_by_label("Title")).to_be_focused()
    await keyboard.press("Control+a")
    await keyboard.type("Greetings")
    await keyboard.press("Enter")
    items = user.page.get_by_role("navigation", name="Threads").get_by_role("listitem")
    await expect(items).to_have_text(["Greetings"])
    await keyboard.press("Control+k")
    await expect(user.page.get_by_label("Search threads")).to_be_focused()
    await enter(user, "Delete Greetings")
    await enter(user, "Delete")
    await expect(items).to_have_count(0)


@over_both
async def test_a_form_is_filled_with_keys(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    keyboard = user.page.keyboard
    await keyboard.type("ask")
    await keyboard.press("Enter")
    form = user.page.get_by_role("form", name="Where to?")
    await expect(form).to_be_focused()
    await tab_to(form.get_by_label("City"))
    await keyboard.type("Lisbon")
    await tab_to(form.get_by_label("Count (optional)"))
    await keyboard.press("ArrowUp")
    await tab_to(form.get_by_label("Speed"))
    await keyboard.type("fast")
    await tab_to(form.get_by_label("Gift"))
    await keyboard.press("Space")
    await tab_to(form.get_by_label("Street"))
    await keyboard.type("Rua A")
    await keyboard.press("Enter")
    for part in ("'city': 'Lisbon'", "'count': 3", "'speed': 'fast'", "'gift': True", "{'street': 'Rua A'}"):
        await user.reads(part)


@over_both
async def test_an_approval_is_given_with_keys(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.page.keyboard.type("calculate 6*7")
    await user.page.keyboard.press("Enter")
    await expect(user.page.get_by_role("region", name="Approval of calculate")).to_be_focused()
    for _ in range(4):  # the arguments, Deny, Edit, Allow
        await user.page.keyboard.press("Tab")
    await expect(user.page.get_by_role("button", name="Allow")).to_be_focused()
    await user.page.keyboard.press("Enter")
    await user.reads("The result of calculate is 42.")


@over_both
async def test_the_focus_follows_the_steps_of_an_approval(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    keyboard = user.page.keyboard
    await user.say("calculate 6*7")
    card = user.page.get_by_role("region", name="Approval of calculate")
    await expect(card).to_be_focused()
    await enter(user, "Edit")
    await expect(card.get_by_label("Expression")).to_be_focused()
    await enter(user, "Back")
    await expect(card).to_be_focused()
    await enter(user, "Deny")
    await expect(card.get_by_label("Reason")).to_be_focused()
    await keyboard.type("too dear")
    await enter(user, "Deny")
    await user.reads("the user denied this call: too dear")


@over_both
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


async def test_a_form_moves_the_focus_to_the_field_that_is_wrong(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("ask")
    form = user.page.get_by_role("form", name="Where to?")
    await form.get_by_label("City").fill("Lisbon")
    await form.get_by_role("button", name="Send").click()
    await expect(form.get_by_role("alert")).to_have_text("Speed is required.")
    await expect(form.get_by_label("Speed")).to_be_focused()


async def test_dialogs_and_editors_give_the_focus_back(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    keyboard = user.page.keyboard
    await user.say("stream 1")
    await user.is_done()
    await keyboard.press("Control+k")
    await enter(user, "Delete stream 1")
    await enter(user, "Cancel")
    await expect(user.page.get_by_role("button", name="Delete stream 1")).to_be_focused()
    for key in ("Enter", "Escape"):
        await enter(user, "Rename stream 1", "Shift+Tab")
        await keyboard.press(key)
        await expect(user.page.get_by_role("button", name="stream 1", exact=True)).to_be_focused()
        await keyboard.press("Tab")
        await keyboard.press("Tab")
    await keyboard.press("/")
    await keyboard.press("ArrowUp")
    await keyboard.press("Escape")
    await expect(user.composer).to_be_focused()


async def test_no_key_after_the_one_that_searches_is_written_elsewhere(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    focused = await user.composer.evaluate(
        """(composer) => {
            composer.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }));
            return document.activeElement.id;
        }"""
    )
    assert focused == "thread-search"


async def test_a_new_chat_does_not_take_the_focus_from_a_search_that_begins_right_after_it(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.say("stream 1")
    await user.is_done()
    focused = await user.page.get_by_role("button", name="New chat", exact=True).evaluate(
        """async (button) => {
            const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
            button.click();
            await new Promise((resolve) => queueMicrotask(() => queueMicrotask(resolve)));
            button.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }));
            await frame();
            await frame();
            return document.activeElement.id;
        }"""
    )
    assert focused == "thread-search"


@over_both
async def test_screen_readers_are_told_what_happens(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    told = user.page.locator("[aria-live='polite']").last
    await user.say("wait 60")
    await expect(told).to_have_text("The assistant is answering.")
    await user.press("Stop")
    await expect(told).to_have_text("The answer was stopped.")
    await user.say("stream 1")
    await expect(told).to_have_text("The assistant says: hello world,")


async def test_a_phone_has_the_threads_in_a_drawer_and_nothing_wider_than_the_screen(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted, viewport=PHONE, has_touch=True)
    threads = user.page.get_by_role("navigation", name="Threads")
    await expect(threads).to_be_hidden()
    await user.say("markdown")
    await user.is_done()
    width = await user.page.evaluate("document.scrollingElement.scrollWidth")
    assert width <= PHONE["width"]
    await user.press("Threads")
    await expect(threads).to_be_visible()
    await user.press("New chat")
    await expect(threads).to_be_hidden()
    await user.press("Inspector")
    await expect(user.page.get_by_role("complementary", name="Inspector")).to_be_in_viewport()


ONE_WORD = """(cell) => {
    const word = document.createRange();
    word.selectNodeContents(cell);
    return word.getClientRects().length;
}"""


async def test_long_names_and_wide_tables_stay_within_a_narrow_screen_and_words_stay_whole(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted, viewport={"width": 320, "height": 640})
    await user.say("wide")
    await user.is_done()
    await expect(user.call("mcp__documents__search_everything_and_everywhere")).to_contain_text("ms")
    scroller = user.conversation.locator("..")
    assert await scroller.evaluate("(frame) => frame.scrollWidth <= frame.clientWidth")
    cell = user.conversation.get_by_role("cell", name="wide").first
    assert await cell.evaluate(ONE_WORD) == 1
    await user.press("Inspector")
    await expect(user.page.get_by_role("button", name="Close inspector")).to_be_in_viewport(ratio=1)


async def test_a_thread_is_renamed_by_touch_on_a_phone(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True)
    await user.say("stream 1")
    await user.is_done()
    await user.page.get_by_role("button", name="Threads", exact=True).tap()
    threads = user.page.get_by_role("navigation", name="Threads")
    rename = threads.get_by_role("button", name="Rename stream 1")
    await rename.tap()
    await threads.get_by_label("Title").fill("Greetings")
    await threads.get_by_label("Title").press("Enter")
    await expect(threads.get_by_role("listitem")).to_have_text(["Greetings"])


async def test_the_threads_of_a_phone_hold_the_focus_and_give_it_back(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True)
    threads = user.page.get_by_role("navigation", name="Threads")
    opener = user.page.get_by_role("button", name="Threads", exact=True)
    focused = user.page.locator(":focus")
    await enter(user, "Threads", "Shift+Tab")
    await expect(threads.get_by_role("button", name="Close threads")).to_be_focused()
    for _ in range(MOST_TABS):
        await user.page.keyboard.press("Tab")
        assert await focused.and_(user.page.locator("main *")).count() == 0
    await user.page.keyboard.press("Escape")
    await expect(threads).to_be_hidden()
    await expect(opener).to_be_focused()
    await user.page.keyboard.press("Control+k")
    await expect(threads.get_by_label("Search threads")).to_be_focused()
    await enter(user, "New chat", "Shift+Tab")
    await expect(threads).to_be_hidden()
    await expect(user.composer).to_be_focused()


@over_both
async def test_escape_closes_the_inspector_where_it_lies_over_the_conversation_before_it_stops_a_run(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True)
    inspector = user.page.get_by_role("complementary", name="Inspector")
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


async def test_reduced_motion_stops_animations(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, reduced_motion="reduce")
    await user.say("wait 60")
    dots = user.page.locator(".working span").first
    await expect(dots).to_have_css("animation-iteration-count", "1")
    await user.press("Stop")


async def test_the_chosen_theme_stays(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, color_scheme="light")
    await user.press("Theme: system")
    await user.press("Theme: light")
    await user.page.reload()
    await expect(user.page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(user.page.locator("body")).to_have_css("background-color", "rgb(22, 22, 24)")


async def test_title_and_accent_are_settings_and_a_pale_accent_stays_readable(visit: Visit) -> None:
    settings = Settings(console_title="Tea & <Cake>", console_accent="#ffe14d")
    async with serving(create_app(None, settings)) as address:
        user = await visit(address)
        await expect(user.page).to_have_title("Tea & <Cake>")
        await expect(user.page.get_by_role("heading", name="Tea & <Cake>")).to_be_visible()
        await user.composer.fill("hello")
        send = user.page.get_by_role("button", name="Send", exact=True)
        await expect(send).to_have_css("background-color", "rgb(255, 225, 77)")
        await expect(send).to_have_css("color", "rgb(17, 17, 19)")
        assert await user.violations() == []
        await user.page.close()


async def test_a_browser_without_idle_time_loads_the_rest_of_the_program_as_well(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    await user.page.add_init_script("delete window.requestIdleCallback")
    async with user.page.expect_request(re.compile("/chunks/agents-")):
        await user.page.reload()
    assert await user.page.evaluate("typeof requestIdleCallback") == "undefined"
    await user.say("stream 1")
    await user.reads("hello world,")
