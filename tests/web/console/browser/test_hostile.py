"""Agents that attack the page, or send very much."""

import pytest
from playwright.async_api import expect

from tests.web.console.browser.conftest import Visit, over_both
from tests.web.console.scripted import FAST_DELTAS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]


@over_both
async def test_nothing_of_a_hostile_answer_runs_or_is_loaded(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    asked: list[str] = []
    user.page.on("request", lambda request: asked.append(request.url))
    await user.finishes("hostile")
    answer = user.conversation.locator(".markdown")
    await expect(answer).to_contain_text("window.attacked = 8")
    await expect(answer).to_contain_text("spy (not loaded from spy.example)")
    await expect(answer.locator(".code-frame")).to_have_count(2)
    await expect(answer.locator(".code-frame").last).to_contain_text("flowchart LR")  # a diagram is its source
    for tag in ("script", "iframe", "form", "style", "svg", "img", "a[href]"):
        await expect(answer.locator(tag)).to_have_count(0)
    await answer.get_by_text("click me").click()
    assert await user.page.evaluate("window.attacked") is None
    assert [url for url in asked if not url.startswith(scripted)] == []


@over_both
async def test_20_000_deltas_and_a_state_of_5_mb_are_shown(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("flood")
    await user.reads(f"flood {FAST_DELTAS - 1}.")
    await user.is_done()
    await user.inspect("State")
    await user.finishes("large")
    tree = user.page.get_by_role("list", name="State")
    await expect(tree.locator(".is-changed")).to_contain_text("changed")
    await expect(tree.get_by_role("button", name="more")).to_be_visible()
