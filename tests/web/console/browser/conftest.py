"""One browser, and servers with the assistant and with a scripted agent, for all tests of a process."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tests.web.console.driver import POLICY, PageServer, User, chromium, serve_page
from tests.web.console.profiles import Profiles

Visit = Callable[..., Awaitable[User]]

over_both = pytest.mark.parametrize("wire", ["sse", "websocket"])
"""Run a test with pages whose runs come over SSE, and with pages whose runs come over a WebSocket."""


@pytest.fixture
def wire() -> str:
    """The transport of a page's runs, where the test is not marked ``over_both``."""
    return "sse"


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def profiles() -> AsyncIterator[Profiles]:
    path = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--process-per-site"])
        yield Profiles(browser)
        await browser.close()


@pytest_asyncio.fixture(loop_scope="package")
async def visit(profiles: Profiles, wire: str) -> AsyncIterator[Visit]:
    """Open the page as a new user. Keyword arguments are those of a browser context, and ``wire``."""
    async with AsyncExitStack() as stack:

        async def visit(address: str, *, wire: str = wire, **options: object) -> User:
            profile = await stack.enter_async_context(profiles.borrow(**options))
            user = await profile.open(address, wire=wire)
            await expect(user.composer).to_be_focused()
            return user

        yield visit


@pytest.fixture(scope="package")
def assistant() -> Iterator[str]:
    """The built-in assistant on the offline model, with a policy that asks and a small context window."""
    with serve_page(AGUI_TOOL_POLICY=POLICY, AGUI_CONTEXT_TOKENS="4000") as server:
        yield server.url


@pytest.fixture(scope="package")
def scripted() -> Iterator[str]:
    with serve_page(AGUI_AGENT="tests.web.console.scripted:agent") as server:
        yield server.url


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[PageServer]:
    """A server whose threads outlive it, and whose runs are lost soon after it."""
    store = f"sqlite:///{tmp_path / 'threads.db'}"
    agent = "tests.web.console.scripted:agent"
    with serve_page("tests.web.console.short_leases", AGUI_AGENT=agent, AGUI_STORE=store) as server:
        yield server
