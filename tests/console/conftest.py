"""One browser for a module, a fresh profile for each test, and servers with the assistant and with a scripted agent."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.console.driver import PageServer, User, chromium, served

POLICY = '[{"tool_pattern": "calculate", "policy": "ask", "reason": "sums cost money", "category": "cost"}]'

Visit = Callable[..., Awaitable[User]]

over_both = pytest.mark.parametrize("wire", ["sse", "websocket"])
"""Run a test with pages whose runs come over SSE, and with pages whose runs come over a WebSocket."""


@pytest.fixture
def wire() -> str:
    """The transport of a page's runs, where the test is not marked ``over_both``."""
    return "sse"


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium without a window."""
    path = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="package")
async def visit(browser: Browser, wire: str) -> AsyncIterator[Visit]:
    """Open the page as a new user. Keyword arguments are those of a browser context, and ``wire``.

    An error in a console of the user's tabs fails the test, unless the test has taken it out of ``complaints``.
    """
    users = []
    contexts = []

    async def visit(address: str, *, wire: str = wire, **options: object) -> User:
        context = await browser.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        user = User(await context.new_page())
        users.append(user)
        await user.open(address, wire=wire)
        return user

    yield visit
    for context in contexts:
        await context.close()
    assert [complaint for user in users for complaint in user.complaints] == []


@pytest.fixture(scope="package")
def assistant() -> Iterator[str]:
    """The built-in assistant on the offline model, with a policy that asks and a small context window."""
    with served(AGUI_TOOL_POLICY=POLICY, AGUI_CONTEXT_TOKENS="4000") as server:
        yield server.url


@pytest.fixture(scope="package")
def scripted() -> Iterator[str]:
    """The agent of ``tests.console.scripted``."""
    with served(AGUI_AGENT="tests.console.scripted:agent") as server:
        yield server.url


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[PageServer]:
    """A server whose threads outlive it, and whose runs are lost soon after it."""
    store = f"sqlite:///{tmp_path / 'threads.db'}"
    agent = "tests.console.scripted:agent"
    with served("tests.console.short_leases", AGUI_AGENT=agent, AGUI_STORE=store) as server:
        yield server
