"""The apps of the guide for front ends, followed from an empty folder: what it installs, saves and runs."""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.docs.documents import GUIDES
from tests.front_ends.driver import NPM, Visitor, check_out, paste
from tests.ports import free_port
from tests.server.sockets.process import program_on
from tests.web.console.driver import PageServer, serve_page

pytestmark = [pytest.mark.browser, pytest.mark.other_language]

GUIDE = GUIDES["clients"].blocks
APPS = ("copilotkit-direct", "copilotkit-runtime", "assistant-ui")
INSTALLS = dict(zip(APPS, (block.text for block in GUIDE if "npm pack" in block.text), strict=True))
(SERVE_PAGE,) = {span for span in GUIDES["clients"].spans if span.startswith("npx ")}

SERVE = re.compile(r"AGUI_CORS_ORIGINS=(\S+).*?AGUI_TOOL_POLICY='(.*?)'", re.DOTALL)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def server(port: int) -> Iterator[PageServer]:
    (serve,) = (block.text for block in GUIDE if "serves" in block.marks)
    found = SERVE.search(serve)
    assert found is not None
    with serve_page(AGUI_CORS_ORIGINS=found[1].replace("5173", str(port)), AGUI_TOOL_POLICY=found[2]) as server:
        yield server


def install(app: str, folder: Path) -> Path:
    """Run the guide's commands for an app beside a copy of this repository; gives the folder that they make."""
    paste(INSTALLS[app], check_out(folder))
    (made,) = (each for each in folder.iterdir() if (each / "node_modules").is_dir())
    return made


def save_files(app: str, folder: Path, agent_url: str, runtime_port: int) -> None:
    """Save the files that the guide shows for an app, with the addresses of the test."""
    files = [block for block in GUIDE if block.file_name is not None]
    texts = {str(block.file_name): block.text for block in files if block.file_name != "main.jsx"}
    copilotkit, assistant_ui = (block.text for block in files if block.file_name == "main.jsx")
    match app:
        case "copilotkit-direct":
            del texts["vite.config.js"]
        case "copilotkit-runtime":
            copilotkit = copilotkit.replace("selfManagedAgents={agents}", 'runtimeUrl="/api/copilotkit"')
            copilotkit = "".join(line for line in copilotkit.splitlines(keepends=True) if "WebSocketAgent" not in line)
            (texts["runtime.mjs"],) = (block.text for block in GUIDE if "createServer(" in block.text)
        case _:
            del texts["vite.config.js"]
    texts["main.jsx"] = assistant_ui if app == "assistant-ui" else copilotkit
    for name, text in texts.items():
        here = text.replace("ws://localhost:8080/", agent_url.replace("http", "ws"))
        here = here.replace("http://localhost:8080/", agent_url).replace("4000", str(runtime_port))
        (folder / name).write_text(here)


@pytest.fixture
def page(app: str, tmp_path: Path, server: PageServer, port: int) -> Iterator[str]:
    folder, runtime_port = install(app, tmp_path), free_port()
    save_files(app, folder, server.url, runtime_port)
    url = f"http://localhost:{port}/"
    with ExitStack() as programs:
        programs.callback(shutil.rmtree, folder)  # half a gigabyte
        if app == "copilotkit-runtime":
            runtime = f"http://127.0.0.1:{runtime_port}/"
            programs.enter_context(program_on(runtime, "node", "runtime.mjs", folder=folder, DO_NOT_TRACK="1"))
        serve = (*SERVE_PAGE.split(), "--strictPort", "--port", str(port))
        programs.enter_context(program_on(url, *serve, folder=folder, npm_config_yes="true", **NPM))
        yield url


@pytest.mark.asyncio(loop_scope="package")
@pytest.mark.parametrize("app", APPS)
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
