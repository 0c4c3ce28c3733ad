"""Browser profiles that tests use one after the other.

A page in a profile of its own starts a process of its own, which takes longer than most tests. So a profile is used
again, by a new user, and an empty tab keeps its process.
"""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page

from tests.web.console.driver import WAIT_MS, Complaints, User

NEW_USER = """(wire) => {
    localStorage.clear();
    localStorage.setItem("agui.wire", wire);
}"""


class Profile:
    def __init__(self, context: BrowserContext, empty: Page) -> None:
        self.context = context
        self._empty = empty
        self.complaints = Complaints()
        context.on("console", self._listen)
        context.on("weberror", lambda caught: self.complaints.texts.append(str(caught.error)))

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.texts.append(message.text)

    async def open(self, address: str, *, wire: str = "sse") -> User:
        """Open an address as a user who has never been there, with this transport of runs."""
        await self._empty.goto(address)
        await self._empty.evaluate(NEW_USER, wire)
        user = User(await self.context.new_page(), self.complaints)
        await user.page.goto(address)
        return user

    async def leave(self) -> None:
        for page in self.context.pages:
            if page is not self._empty:
                await page.close()


class Profiles:
    """The profiles of ``browser``, by the options of their contexts."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._free: defaultdict[str, list[Profile]] = defaultdict(list)

    @asynccontextmanager
    async def borrow(self, **options: object) -> AsyncIterator[Profile]:
        """A profile for one user until the end of the block, in which no console shows an error that was unexpected."""
        free = self._free[json.dumps(options, sort_keys=True)]
        profile = free.pop() if free else await self._create(options)
        yield profile
        await profile.leave()
        unexpected = profile.complaints.unexpected
        profile.complaints.clear()
        free.append(profile)
        assert unexpected == [], unexpected

    async def _create(self, options: dict[str, object]) -> Profile:
        context = await self.browser.new_context(**options)  # type: ignore[arg-type]
        context.set_default_timeout(WAIT_MS)
        empty = await context.new_page()
        await empty.route("**", lambda route: route.fulfill(body=""))
        return Profile(context, empty)
