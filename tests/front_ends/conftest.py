"""One browser and one agent server for all front ends, and one preview server for each of them."""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.front_ends.driver import Visitor, previewed
from tests.machine import find_program
from tests.web.console.driver import ROOT, PageServer, chromium, published_apps, serve_page

MCP_SERVER = {"name": "shop", "command": sys.executable, "args": [str(ROOT / "tests/tools/mcp_process.py")]}
POLICY = '[{"tool_pattern": "calculate", "policy": "ask"}]'

Visit = Callable[[str], Awaitable[Visitor]]


@pytest.fixture(scope="package", autouse=True)
def npm() -> str:
    return find_program("npm")


@pytest.fixture(scope="package")
def server() -> Iterator[PageServer]:
    """The assistant on the offline model, which asks before it calculates, with MCP servers of questions and apps."""
    with serve_page(AGUI_TOOL_POLICY=POLICY, AGUI_MCP_SERVERS=json.dumps([MCP_SERVER, *published_apps()])) as server:
        yield server


@pytest.fixture(scope="package")
def address_of(server: PageServer) -> Iterator[Callable[[str], str]]:
    """The address of a front end, which is served from the first time that somebody asks for it."""
    with ExitStack() as stack:

        @cache
        def address_of(app: str) -> str:
            return stack.enter_context(previewed(app, server.url))

        yield address_of


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def browser() -> AsyncIterator[Browser]:
    path = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="package")
async def visit(browser: Browser, address_of: Callable[[str], str]) -> AsyncIterator[Visit]:
    """Open a front end as a new user. An exception in the page fails the test."""
    visitors = []

    async def visit(app: str) -> Visitor:
        url = address_of(app)
        visitors.append(visitor := Visitor(await browser.new_page()))
        await visitor.open(app, url)
        return visitor

    yield visit
    for visitor in visitors:
        await visitor.page.close()
    assert [complaint for visitor in visitors for complaint in visitor.complaints] == []
