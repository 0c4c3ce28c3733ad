"""Agents that attack the page, or send more than it can take."""

from itertools import combinations
from statistics import median

import pytest
from playwright.async_api import expect

from tests.console.conftest import Visit, over_both
from tests.console.driver import User
from tests.console.long_tasks import no_long_task
from tests.console.scripted import FAST_DELTAS, STATE_BYTES

pytestmark = pytest.mark.asyncio(loop_scope="package")

FLOOD_GROWTH_BYTES = 350_000
"""Growth per chat, which is less than the events of one flood."""

STATE_GROWTH_BYTES = STATE_BYTES // 2
"""Growth per chat, which is less than one state."""


async def heap(user: User) -> float:
    """Bytes of JavaScript objects after a collection."""
    devtools = await user.page.context.new_cdp_session(user.page)
    await devtools.send("HeapProfiler.enable")
    await devtools.send("HeapProfiler.collectGarbage")
    used: float = (await devtools.send("Runtime.getHeapUsage"))["usedSize"]
    await devtools.detach()
    return used


async def growth(user: User, script: str, last_words: str, *, warm_up: int, chats: int) -> float:
    """Bytes that each of some chats adds: the median growth per chat between any two of them.

    A single size may hold what the browser has not collected yet. The chats of the warm-up fill the event log, which is
    bounded.
    """
    sizes: list[float] = []
    for _ in range(warm_up + chats):
        await user.press("New chat")
        await user.say(script)
        await user.reads(last_words)
        await user.is_done()
        sizes.append(await heap(user))
    pairs = combinations(enumerate(sizes[warm_up - 1 :]), 2)
    return median((later - earlier) / (last - first) for (first, earlier), (last, later) in pairs)


@over_both
async def test_nothing_of_a_hostile_answer_runs_or_is_loaded(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    asked: list[str] = []
    user.page.on("request", lambda request: asked.append(request.url))
    await user.say("hostile")
    await user.is_done()
    answer = user.conversation.locator(".markdown")
    await expect(answer).to_contain_text("window.attacked = 8")
    await expect(answer.locator(".code-frame")).to_have_count(1)
    for tag in ("script", "iframe", "form", "style", "svg", "img", "a[href]"):
        await expect(answer.locator(tag)).to_have_count(0)
    await answer.get_by_text("click me").click()
    assert await user.page.evaluate("window.attacked") is None
    assert [url for url in asked if not url.startswith(scripted)] == []


async def test_the_policy_stops_inline_script_that_got_into_the_page(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.attacked = 1';
            document.body.append(script);
        }"""
    )
    assert await user.page.evaluate("window.attacked") is None
    assert any("Content Security Policy" in complaint for complaint in user.complaints.texts)
    user.expect_complaints("Content Security Policy")


async def test_an_error_in_another_tab_is_a_complaint_as_well(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    second = await user.open_tab(scripted)
    async with user.page.context.expect_event("weberror"):
        await second.page.evaluate("setTimeout(() => { throw new Error('broken'); })")
    assert any("broken" in complaint for complaint in user.complaints.texts)
    user.expect_complaints("broken")


@over_both
async def test_20_000_deltas_at_full_speed_block_nothing_and_are_all_shown(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.say("hello")
    await user.is_done()
    async with no_long_task(user.page):
        await user.say("flood")
        await expect(user.conversation).to_contain_text(f"flood {FAST_DELTAS - 1}.", timeout=300_000)
        await user.is_done()


@over_both
async def test_a_state_of_5_mb_is_shown_and_blocks_nothing(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.press("Inspector")
    await user.page.get_by_role("tab", name="State").click()
    async with no_long_task(user.page):
        await user.say("large")
        await user.reads("The state is large.")
        await user.is_done()
    tree = user.page.get_by_role("list", name="State")
    await expect(tree.locator(".is-changed")).to_contain_text("changed")
    await expect(tree.get_by_role("button", name="more")).to_be_visible()


@over_both
async def test_memory_stays_flat_over_chats_of_20_000_deltas(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    per_chat = await growth(user, "flood", f"flood {FAST_DELTAS - 1}.", warm_up=2, chats=6)
    assert per_chat < FLOOD_GROWTH_BYTES


@over_both
async def test_memory_stays_flat_over_chats_with_a_state_of_5_mb(visit: Visit, scripted: str) -> None:
    user = await visit(scripted)
    await user.inspect("State")
    per_chat = await growth(user, "large", "The state is large.", warm_up=8, chats=3)
    assert per_chat < STATE_GROWTH_BYTES
