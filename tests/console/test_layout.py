"""Panels that are hidden or resized, touch screens, and texts that are too long."""

import pytest
from playwright.async_api import expect

from tests.console.conftest import Visit
from tests.console.driver import PHONE

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


async def test_a_touch_screen_has_large_targets_and_enter_begins_a_line(visit: Visit, assistant: str) -> None:
    user = await visit(assistant, viewport=PHONE, has_touch=True, is_mobile=True)
    await user.page.keyboard.type("stream 1")
    await user.page.keyboard.press("Enter")
    await expect(user.composer).to_have_value("stream 1\n")
    for name in ("Threads", "Inspector", "Attach files", "Send"):
        box = await user.page.get_by_role("button", name=name, exact=True).bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44
    await user.press("Send")
    await user.reads("hello world,")


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
