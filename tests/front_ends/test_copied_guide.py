"""The apps of the guide for front ends, made of nothing but what the guide shows, in an empty folder."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.console.driver import ROOT, PageServer, serve_page
from tests.docs.documents import GUIDES
from tests.front_ends.driver import PREVIEW, VITE, Visitor
from tests.ports import free_port
from tests.sockets.process import program_on

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


def write_app(app: str, folder: Path, agent_url: str, runtime_port: int) -> None:
    """Write the files that the guide shows or names for an app."""
    files = [block for block in GUIDES["clients"].blocks if block.file_name is not None]
    texts = {str(block.file_name): block.text for block in files if block.file_name != "main.jsx"}
    copilotkit, assistant_ui = (block.text for block in files if block.file_name == "main.jsx")
    match app:
        case "copilotkit-direct":
            del texts["vite.config.js"]
        case "copilotkit-runtime":
            copilotkit = copilotkit.replace("selfManagedAgents={agents}", 'runtimeUrl="/api/copilotkit"')
            copilotkit = "".join(line for line in copilotkit.splitlines(keepends=True) if "WebSocketAgent" not in line)
            (texts["runtime.mjs"],) = (b.text for b in GUIDES["clients"].blocks if "createServer(" in b.text)
        case _:
            del texts["vite.config.js"]
            source = ROOT / "examples" / app / "src"
            texts |= {name: (source / name).read_text() for name in ("chat.tsx", "style.css")}
    texts["main.jsx"] = assistant_ui if app == "assistant-ui" else copilotkit
    for name, text in texts.items():
        here = text.replace("ws://localhost:8080/", agent_url.replace("http", "ws"))
        here = here.replace("http://localhost:8080/", agent_url).replace("4000", str(runtime_port))
        (folder / name).write_text(here)
    (folder / "node_modules").symlink_to(ROOT / "examples" / app / "node_modules")


@pytest.fixture
def page(app: str, tmp_path: Path, server: PageServer, port: int) -> Iterator[str]:
    """The page of the guide, which is built and served; gives its address."""
    runtime_port = free_port()
    write_app(app, tmp_path, server.url, runtime_port)
    subprocess.run([*VITE, "build"], cwd=tmp_path, check=True, capture_output=True)
    url = f"http://localhost:{port}/"
    with ExitStack() as programs:
        if app == "copilotkit-runtime":
            runtime = f"http://127.0.0.1:{runtime_port}/"
            programs.enter_context(program_on(runtime, "node", "runtime.mjs", folder=tmp_path, DO_NOT_TRACK="1"))
        programs.enter_context(program_on(url, *PREVIEW, str(port), folder=tmp_path, DO_NOT_TRACK="1"))
        yield url


@pytest.mark.asyncio(loop_scope="package")
@pytest.mark.parametrize("app", ["copilotkit-direct", "copilotkit-runtime", "assistant-ui"])
async def test_the_copied_app_shows_calls_and_asks_for_approval(app: str, page: str, browser: Browser) -> None:
    visitor = Visitor(await browser.new_page())
    await visitor.open(app, page)
    await visitor.say("calculate 6*7")
    await expect(visitor.approval).to_be_visible()
    await visitor.press("Approve")
    await expect(visitor.tool("calculate")).to_contain_text("6*7")
    await visitor.reads("The result of calculate is 42.")
    height = await visitor.page.evaluate("document.querySelector('main, [role=main]').getBoundingClientRect().height")
    assert height == visitor.page.viewport_size["height"]  # type: ignore[index]
    await visitor.page.close()
    assert visitor.complaints == []
