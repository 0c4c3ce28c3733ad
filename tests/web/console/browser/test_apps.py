"""MCP Apps on the page: what they show, what they may ask for, and what they cannot reach."""

import json
import re
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.async_api import ConsoleMessage, FrameLocator, Route, expect

from tests.web.console.apps_process import APPS_SERVER
from tests.web.console.browser.conftest import Visit
from tests.web.console.driver import CALL_BUDGET, CALL_DEBUG, User, published_apps, serve_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="package")]

SETTINGS = {"AGUI_MCP_SERVERS": json.dumps([APPS_SERVER]), "AGUI_APP_DOMAINS": "https://*.example"}
RULES = [{"tool_pattern": "apps_buy", "policy": "ask"}]
DENIED = [{"tool_pattern": "apps_buy", "policy": "deny"}]


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """The assistant with the apps, one of which may reach the domain that it names."""
    with serve_page(**SETTINGS, AGUI_TOOL_POLICY=json.dumps(RULES)) as server:
        yield server.url


def app(user: User, at: int = 0) -> FrameLocator:
    return user.conversation.frame_locator("iframe").nth(at)


async def press(shown: FrameLocator, name: str) -> None:
    """Press a button of an app. A click of the mouse misses it when the page moves the app meanwhile."""
    await shown.get_by_role("button", name=name, exact=True).dispatch_event("click")


def names(words: str, message: ConsoleMessage) -> bool:
    return words in message.text


async def record(user: User, *hosts: str) -> list[str]:
    """Answer requests for hosts, and return the list of those that arrive from now on."""
    reached: list[str] = []

    async def answer(route: Route) -> None:
        reached.append(route.request.url)
        await route.fulfill(body="answered", headers={"Access-Control-Allow-Origin": "*"})

    for host in hosts:
        await user.page.context.route(f"**://{host}/**", answer)
    return reached


async def test_a_hostile_app_reaches_nothing_of_the_page_and_no_tool_that_it_may_not_call(visit: Visit) -> None:
    with serve_page(**SETTINGS, AGUI_TOOL_POLICY=json.dumps(DENIED)) as server:
        user = await visit(server.url)
        user.expect_complaints("")
        reached = await record(user, "spy.example")
        address = user.page.url
        await user.finishes("call apps_show {}")
        await expect(app(user).locator("pre")).to_contain_text("result")  # the frame that the hostile app attacks
        await user.finishes("call apps_attack {}")
        hostile = app(user, 1)
        await expect(hostile.locator("pre")).to_contain_text("done: ")
        await expect(hostile.locator("pre")).to_have_text("origin null, 31 attempts, done: nothing")
        for button, words in (("Submit", "form-action"), ("Leave", "frame-src")):
            async with user.page.expect_console_message(partial(names, words)):
                await press(hostile, button)
        assert reached == []
        assert user.page.url.startswith(address)
        await expect(user.items).to_have_count(1)
        await user.page.close()


async def test_apps_of_a_turn_stay_and_ask_their_server_also_after_a_reload(visit: Visit, shop: str) -> None:
    user = await visit(shop, color_scheme="dark")
    await user.finishes('call apps_show {"item": "tea"}\ncall apps_show {"item": "milk"}')
    order = []
    for _ in range(2):
        for at in range(2):
            shown = app(user, at).locator("pre")
            await expect(shown).to_contain_text(re.compile("theme dark.*result", re.DOTALL))
            order.append("tea" if "tea" in await shown.inner_text() else "milk")
            await expect(shown).to_contain_text(f'input {{"item":"{order[-1]}"}}')
            await expect(shown).to_contain_text(f"result {order[-1]} is shown")
            await press(app(user, at), "Refresh")
            await expect(shown).to_contain_text("refreshed")
        await user.reads("The result of apps_show is tea is shown")
        await user.page.reload()
    assert order[:2] == order[2:]
    assert set(order) == {"tea", "milk"}


async def test_what_an_app_wants_is_asked_for_and_may_be_refused(visit: Visit, shop: str) -> None:
    user = await visit(shop)
    reached = await record(user, "api.example", "shop.example")
    await user.finishes("call apps_show {}")
    shown = app(user).locator("pre")
    await press(app(user), "Fetch")
    await expect(shown).to_contain_text("answered")
    card = user.page.get_by_role("region", name="Approval of apps_buy")
    for button, read in (("Allow", "milk is bought"), ("Deny", "denied")):
        await press(app(user), "Buy")
        await expect(card).to_contain_text("milk")
        await card.get_by_role("button", name=button).click()
        if button == "Deny":
            await card.get_by_role("button", name=button).click()
        await expect(shown).to_contain_text(read)
    await press(app(user), "Link")
    async with user.page.context.expect_page() as opened:
        await user.press("Open")
    await (await opened.value).close()
    assert reached == ["https://api.example/", "https://shop.example/"]
    await press(app(user), "Say")
    await user.page.get_by_role("dialog").get_by_role("button", name="Send").click()
    await user.reads("hello world,")
    await press(app(user), "Say")
    await user.press("Cancel")
    await expect(shown).to_contain_text('{"isError":true}')
    await expect(user.messages).to_have_count(2)


@pytest.mark.other_language
async def test_published_apps_are_shown_and_clicks_reach_their_servers(visit: Visit) -> None:
    with serve_page(AGUI_MCP_SERVERS=json.dumps(published_apps())) as server:
        user = await visit(server.url)
        await user.finishes(CALL_BUDGET, CALL_DEBUG)
        budget, debug = app(user), app(user, 1)
        await expect(budget.locator("body")).to_contain_text("Allocated: $100,000 / $100,000")
        await budget.locator(".slider").first.fill("50")
        await expect(budget.locator("body")).to_contain_text("Allocated: $125,000 / $100,000")
        await press(debug, "Call debug-refresh")
        await expect(debug.locator("body")).to_contain_text("server-tool-result")
        await user.page.close()
