"""Take the pictures of the guides: ``make pictures`` writes them into ``docs/images``."""

import asyncio
from collections.abc import Awaitable, Callable

from playwright.async_api import Browser, ViewportSize, async_playwright, expect

from tests.web.console.driver import PHONE, POLICY, ROOT, Complaints, User, chromium, serve_page

IMAGES = ROOT / "docs" / "images"
DESK: ViewportSize = {"width": 1280, "height": 800}
WIDE: ViewportSize = {"width": 1440, "height": 860}
WIDE_LOW: ViewportSize = {"width": 1440, "height": 600}
MOBILE: ViewportSize = {"width": PHONE["width"], "height": PHONE["height"]}

Prepare = Callable[[User], Awaitable[None]]


async def say(user: User, *texts: str) -> None:
    for text in texts:
        await user.say(text)
        await user.is_done()


async def start(user: User) -> None:
    await expect(user.page.get_by_label("Suggestions")).to_be_visible()


async def approval(user: User) -> None:
    await say(user, "think about rain", "delegate what time is it in Europe/Berlin")
    await user.say("calculate 2*(3+4)")
    await expect(user.page.get_by_role("region", name="Approval of calculate")).to_be_visible()


async def events(user: User) -> None:
    await say(user, "delegate what time is it in Europe/Berlin", "stream 40")
    await user.inspect("Events")


async def trace(user: User) -> None:
    await say(user, "delegate wait 1")
    await user.inspect("Trace")


async def state(user: User) -> None:
    await say(user, "state")
    await user.inspect("State")


async def markdown(user: User) -> None:
    await say(user, "markdown")
    await expect(user.conversation.locator(".hljs-keyword").first).to_be_visible()
    await expect(user.conversation.locator("math").first).to_be_visible()


ASSISTANT: dict[str, tuple[ViewportSize, Prepare]] = {
    "start-light": (DESK, start),
    "approval-light": (DESK, approval),
    "events-light": (WIDE, events),
    "trace-light": (WIDE_LOW, trace),
    "phone-dark": (MOBILE, approval),
}
"""Pictures with the built-in assistant, by the names of their files. The last word of a name is the theme."""

SCRIPTED: dict[str, tuple[ViewportSize, Prepare]] = {
    "state-dark": (WIDE_LOW, state),
    "markdown-dark": (DESK, markdown),
}
"""Pictures with the agent of ``tests.web.console.scripted``."""


async def take(browser: Browser, url: str, name: str, size: ViewportSize, prepare: Prepare) -> None:
    is_phone = size == MOBILE
    context = await browser.new_context(
        viewport=size,
        color_scheme="dark" if name.endswith("-dark") else "light",
        reduced_motion="reduce",
        has_touch=is_phone,
        is_mobile=is_phone,
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )
    user = User(await context.new_page(), Complaints())
    await user.page.goto(url)
    await prepare(user)
    await user.page.mouse.move(0, 0)
    await user.page.screenshot(path=IMAGES / f"{name}.png", animations="disabled", caret="hide")
    await context.close()


async def main() -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for pictures, settings in (
            (ASSISTANT, {"AGUI_TOOL_POLICY": POLICY, "AGUI_CONTEXT_TOKENS": "4000"}),
            (SCRIPTED, {"AGUI_AGENT": "tests.web.console.scripted:agent"}),
        ):
            with serve_page(**settings) as server:
                for name, (size, prepare) in pictures.items():
                    await take(browser, server.url, name, size, prepare)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
