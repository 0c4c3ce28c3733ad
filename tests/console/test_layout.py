"""Panels that are hidden or resized, touch screens, and texts that are too long."""

import pytest
from playwright.async_api import expect

from tests.console.conftest import POLICY, Visit, over_both
from tests.console.driver import PHONE, User, serve_page

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_the_threads_are_hidden_and_shown_again(visit: Visit, assistant: str) -> None:
    user = await visit(assistant)
    threads = user.page.get_by_role("navigation", name="Threads")
    await user.press("Close threads")
    await expect(threads).to_be_hidden()
    await user.page.reload()
    await expect(threads).to_be_hidden()
    await user.page.keyboard.press("Control+k")
    await expect(user.page.get_by_label("Search threads")).to_be_focused()
    await expect(threads).to_be_visible()


async def test_the_inspector_is_made_wider_with_keys_and_lies_over_a_scrim_on_a_tablet(
    visit: Visit, assistant: str
) -> None:
    user = await visit(assistant)
    await user.press("Inspector")
    inspector = user.page.get_by_role("complementary", name="Inspector")
    before = await inspector.evaluate("(panel) => panel.offsetWidth")
    await user.page.get_by_role("separator", name="Width of the inspector").press("ArrowLeft")
    await expect(inspector).not_to_have_css("width", f"{before}px")
    await user.page.set_viewport_size({"width": 820, "height": 1000})
    await user.page.locator(".scrim").click(position={"x": 20, "y": 500})
    await expect(inspector).to_have_count(0)


async def test_a_replay_on_a_phone_is_not_hidden_by_the_inspector(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True)
    await user.say("stream 1")
    await user.is_done()
    inspector = user.page.get_by_role("complementary", name="Inspector")
    for _ in range(2):
        await user.inspect("Replay")
        await inspector.get_by_role("list", name="Runs").get_by_role("button").click()
        await expect(inspector).to_have_count(0)
        await expect(user.page.get_by_role("group", name="Replay")).to_be_visible()
        await user.press("Close replay")


SMALL_TARGETS = """() =>
    [...document.querySelectorAll("button, select, summary, textarea, input")]
        .filter((each) => !each.closest("[inert]") && each.checkVisibility({ visibilityProperty: true }))
        .map((each) => (["checkbox", "radio"].includes(each.type) ? each.closest("label") : each))
        .filter((each) => Math.min(each.offsetWidth, each.offsetHeight) < 44)
        .map((each) => `${each.outerHTML.slice(0, 120)} ${each.offsetWidth}x${each.offsetHeight}`)
"""
"""Controls that are shown and are too small for a finger. The label of a box counts as a part of it."""


async def has_large_targets(user: User) -> None:
    """Fail if a control that is shown is too small."""
    assert await user.page.evaluate(SMALL_TARGETS) == []


async def test_every_control_of_a_touch_screen_is_large(visit: Visit) -> None:
    with serve_page(AGUI_TOOL_POLICY=POLICY, AGUI_MODELS="spare=offline") as server:
        user = await visit(server.url, viewport=PHONE, has_touch=True, is_mobile=True)
        await expect(user.page.get_by_label("Model")).to_be_visible()
        await has_large_targets(user)
        await user.say("calculate 6*7")
        await user.press("Edit")
        await has_large_targets(user)
        await user.press("JSON")
        await has_large_targets(user)
        await user.press("Allow with these")
        await user.reads("The result of calculate is 42.")
        await user.say("think about rain")
        await user.is_done()
        await user.page.get_by_text("Thought", exact=True).click()
        await user.page.get_by_role("button", name="Edit and send again").first.click()
        await has_large_targets(user)
        await user.press("Threads")
        await user.press("Rename calculate 6*7")
        await has_large_targets(user)
        await user.press("Close threads")
        await user.press("Inspector")
        for tab in ("Events", "Trace", "State", "Run", "Replay", "Server"):
            await user.page.get_by_role("tab", name=tab).click()
            await has_large_targets(user)
        await user.page.get_by_role("tab", name="Replay").click()
        await user.page.get_by_label("Runs").get_by_role("button").first.click()
        await expect(user.page.get_by_role("group", name="Replay")).to_be_visible()
        await has_large_targets(user)
        slider = await user.page.get_by_role("slider", name="Event").evaluate("(slider) => slider.offsetWidth")
        assert slider > 200


IS_ONE_LINE = "(element) => element.offsetHeight < 2 * parseFloat(getComputedStyle(element).fontSize)"


async def test_the_use_of_the_context_is_one_line_beside_a_choice_of_models_on_a_phone(visit: Visit) -> None:
    with serve_page(AGUI_MODELS="spare=offline", AGUI_CONTEXT_TOKENS="4000") as server:
        user = await visit(server.url, viewport=PHONE, has_touch=True, is_mobile=True)
        await user.say("what time is it")
        await expect(user.page.get_by_label("Model")).to_be_visible()
        meter = user.page.locator(".context-meter")
        await expect(meter).to_have_text("Context3 %")
        assert await meter.evaluate(IS_ONE_LINE)
        await user.page.close()


@over_both
async def test_every_control_of_a_form_and_of_a_state_is_large_on_a_touch_screen(visit: Visit, scripted: str) -> None:
    user = await visit(scripted, viewport=PHONE, has_touch=True, is_mobile=True)
    await user.say("hello")
    await user.is_done()
    await user.press("Bad answer")
    await has_large_targets(user)
    await user.say("state")
    await user.is_done()
    await user.inspect("State")
    await has_large_targets(user)
    await user.page.get_by_role("tab", name="Events").click()
    rows = user.page.get_by_role("list", name="Events")
    await has_large_targets(user)
    heights = await rows.evaluate("(list) => [list.offsetHeight, list.children.length * 44]")
    assert heights[0] == heights[1]
    await user.press("Close inspector")
    await user.say("ask")
    await expect(user.page.get_by_role("form", name="Where to?")).to_be_visible()
    await has_large_targets(user)


CUT = """() => [...document.querySelectorAll(".thread-title, .answerer-name, .answerer select")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1 || each.clientWidth < 40)
    .map((each) => `${each.outerHTML.slice(0, 80)} ${each.scrollWidth}>${each.clientWidth}`)
"""
"""Names in the top bar that are cut or hidden."""


@pytest.mark.parametrize("width", [390, 820, 1000, 1280])
async def test_the_top_bar_shows_the_title_the_agent_and_the_model_at_every_width(visit: Visit, width: int) -> None:
    choice = {
        "AGUI_AGENT": "helper",
        "AGUI_AGENTS": "helper=assistant,guide=tests.console.scripted:agent",
        "AGUI_MODELS": "spare=offline",
    }
    with serve_page(AGUI_CONTEXT_TOKENS="4000", **choice) as server:
        user = await visit(server.url, viewport={"width": width, "height": 844})
        await user.say("what time is it")
        await user.is_done()
        await expect(user.page.get_by_role("heading", name="what time is it")).to_be_visible()
        await expect(user.page.get_by_label("Agent")).to_be_visible()
        await expect(user.page.get_by_label("Model")).to_be_visible()
        assert await user.page.evaluate(CUT) == []
        await user.page.close()


async def test_the_top_bar_of_a_phone_names_the_agent_and_the_model(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True, is_mobile=True)
    await expect(user.page.locator(".answerer")).to_be_visible()
    await expect(user.page.locator(".answerer-name")).to_have_text(["assistant", "offline model"])
    assert await user.page.evaluate(CUT) == []


@over_both
async def test_enter_begins_a_line_on_a_touch_screen(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True, is_mobile=True)
    await user.page.keyboard.type("stream 1")
    await user.page.keyboard.press("Enter")
    await expect(user.composer).to_have_value("stream 1\n")
    await user.press("Send")
    await user.reads("hello world,")
    await user.is_done()
    await user.press("Edit and send again")
    editor = user.page.get_by_label("Edit your message")
    await editor.press("End")
    await editor.press("Enter")
    await expect(editor).to_have_value("stream 1\n")


@over_both
async def test_a_long_text_is_folded_and_a_picture_of_another_server_says_that_it_is_not_loaded(
    visit: Visit, scripted: str
) -> None:
    user = await visit(scripted)
    await user.say("line\n" * 60)
    await user.is_done()
    assert await user.messages.evaluate("(message) => message.offsetHeight") < 400
    await user.press("Show all")
    await expect(user.page.get_by_role("button", name="Show less")).to_be_visible()
    await user.say("hostile")
    await user.reads("spy (not loaded from spy.example)")
