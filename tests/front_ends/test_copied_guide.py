"""The app of the guide for CopilotKit, made of nothing but what the guide shows, in an empty folder."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.console.driver import ROOT, PageServer, serve_page
from tests.docs.documents import GUIDES
from tests.front_ends.driver import Visitor, need_app, wait_until_served
from tests.ports import free_port

APP = ROOT / "examples" / "copilotkit-direct"
VITE = ("node", "node_modules/vite/bin/vite.js")
SERVE = re.compile(r"AGUI_CORS_ORIGINS=(\S+).*?AGUI_TOOL_POLICY='(.*?)'", re.DOTALL)


@pytest.fixture
def port() -> int:
    """The port of the page, in the place of 5173."""
    return free_port()


@pytest.fixture
def server(port: int) -> Iterator[PageServer]:
    """The agent, served as the guide says."""
    (serve,) = (block.text for block in GUIDES["clients"].blocks if "serves" in block.marks)
    found = SERVE.search(serve)
    assert found is not None
    with serve_page(AGUI_CORS_ORIGINS=found[1].replace("5173", str(port)), AGUI_TOOL_POLICY=found[2]) as server:
        yield server


@pytest.fixture
def page(tmp_path: Path, server: PageServer, port: int) -> Iterator[str]:
    """The page of the guide, which is built and served; gives its address."""
    need_app(APP.name)
    for block in GUIDES["clients"].blocks:
        if block.file_name in {"index.html", "main.jsx"}:
            text = block.text.replace("ws://localhost:8080/", server.url.replace("http", "ws"))
            tmp_path.joinpath(block.file_name).write_text(text)
    tmp_path.joinpath("node_modules").symlink_to(APP / "node_modules")
    subprocess.run([*VITE, "build"], cwd=tmp_path, check=True, capture_output=True)
    preview = subprocess.Popen([*VITE, "preview", "--port", str(port), "--strictPort"], cwd=tmp_path)
    try:
        wait_until_served(f"http://localhost:{port}/", preview)
        yield f"http://localhost:{port}/"
    finally:
        preview.kill()
        preview.wait()


@pytest.mark.asyncio(loop_scope="package")
async def test_the_copied_app_shows_calls_and_asks_for_approval(page: str, browser: Browser) -> None:
    visitor = Visitor(await browser.new_page())
    await visitor.page.goto(page)
    await visitor.say("calculate 6*7")
    await expect(visitor.approval).to_be_visible()
    await visitor.press("Approve")
    await expect(visitor.tool("calculate")).to_contain_text("6*7")
    await visitor.reads("The result of calculate is 42.")
    height = await visitor.page.evaluate("document.querySelector('main').getBoundingClientRect().height")
    assert height == visitor.page.viewport_size["height"]  # type: ignore[index]
    await visitor.page.close()
    assert visitor.complaints == []
