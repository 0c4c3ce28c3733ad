"""An outside opinion: ``agui-inspector``, a page of other people that checks every event, drives this server."""

import re
from collections.abc import Awaitable, Callable

import pytest
from agui_inspector import Agent, mount_inspector  # type: ignore[import-untyped]
from playwright.async_api import expect

from agui_container import Settings, create_app
from tests.behaviour.server import serving
from tests.web.console.driver import POLICY, User
from tests.web.console.profiles import Profiles

pytestmark = [pytest.mark.browser, pytest.mark.packages, pytest.mark.asyncio(loop_scope="package")]


async def talk(user: User, *turns: tuple[str, str]) -> None:
    for text, answer in turns:
        await user.page.get_by_role("textbox", name="Message", exact=True).fill(text)
        await user.page.get_by_role("button", name="Send message").click()
        await expect(user.page.get_by_role("region", name="Conversation")).to_contain_text(answer)


async def stop_is(user: User, *, enabled: bool) -> None:
    await expect(user.page.get_by_role("button", name="Stop", exact=True)).to_be_enabled(enabled=enabled)


async def use_assistant(user: User) -> None:
    for turn in (
        ("what time is it", "The result of current_time is"),
        ("think about rain", "I have thought about rain."),
        ("delegate what time is it", "The result of delegate is"),
        ("fail", "MODEL_ERROR · The model failed."),
    ):
        await talk(user, turn)
        await stop_is(user, enabled=False)
    await talk(user, ("calculate 6*7", "calculate"))
    await user.page.get_by_role("textbox", name="Answer for interrupt").fill('{"approved": true}')
    await user.page.get_by_role("button", name="Resolve interrupt").click()
    await expect(user.page.get_by_role("region", name="Conversation")).to_contain_text("The result of calculate is 42.")
    await stop_is(user, enabled=False)


async def stop_a_run(user: User) -> None:
    await talk(user, ("wait 60", "Waiting 60 s."))
    await user.press("Stop")
    await stop_is(user, enabled=False)
    await talk(user, ("stream 2", "hello world, hello world,"))


async def use_scripts(user: User) -> None:
    await talk(user, ("steps", "Found three."))
    await stop_is(user, enabled=False)
    await talk(user, ("state", "Found three."))


@pytest.mark.parametrize(
    ("agent", "use", "runs"),
    [("assistant", use_assistant, 6), ("tests.web.console.scripted:agent", use_scripts, 2)],
)
async def test_it_finds_no_fault(
    profiles: Profiles, agent: str, use: Callable[[User], Awaitable[None]], runs: int
) -> None:
    app = create_app(agent, Settings(tool_policy=POLICY))
    mount_inspector(app, agents=[Agent("agent", "/invocations", capabilities="/capabilities")], enabled=True)
    async with serving(app) as url, profiles.borrow() as profile:
        user = await profile.open(f"{url}/agui-inspector/")
        await use(user)
        frames = user.page.get_by_role("region", name="Inspection", exact=True)
        await expect(frames.get_by_role("button", name=re.compile(r"^POST .invocations .*\b200 "))).to_have_count(runs)
        await expect(frames.get_by_role("button", name="Issues 0", exact=True)).to_be_visible()
        if use is use_assistant:
            await stop_a_run(user)
