"""The built front ends of ``examples/``, as ``npm run preview`` serves them, a user of one, and a reader of guides."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.async_api import Locator, Page, expect

from tests.docs.documents import BLOCKS
from tests.ports import free_port
from tests.server.sockets.process import program_on
from tests.web.console.driver import ROOT, WAIT_MS

VITE = ("node", "../node_modules/vite/bin/vite.js")
PREVIEW = (*VITE, "preview", "--host", "127.0.0.1", "--strictPort", "--port")

NEXTJS = next(block for block in BLOCKS if block.language == "bash" and "examples/nextjs" in block.text)
"""What builds and starts the app with Next.js."""

CLIENT = Path("clients/typescript")
INSTALL_SECONDS = 1_800.0
NPM = {"npm_config_prefer_offline": "true", "npm_config_audit": "false", "npm_config_fund": "false"}
"""Packages that npm has in its cache are not asked for again."""


def check_out(folder: Path) -> Path:
    """Copy what the guides need of this repository, as it is before anything is installed; gives the copy."""
    checkout = folder / "agui-container"
    for part in (CLIENT, Path("examples/assistant-ui/src")):
        shutil.copytree(ROOT / part, checkout / part, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    return checkout


def paste(commands: str, folder: Path) -> str:
    shell, env = ["bash", "-euo", "pipefail", "-c", commands], {**os.environ, **NPM}
    done = subprocess.run(
        shell, cwd=folder, env=env, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def previewed(app: str, agent_url: str) -> Iterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    with program_on(url, *PREVIEW, str(port), folder=ROOT / "examples" / app, AGENT_URL=agent_url, DO_NOT_TRACK="1"):
        yield url


class Visitor:
    """One browser tab with one of the front ends, which name their cards and buttons alike.

    ``complaints`` are exceptions in the page.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        page.set_default_timeout(WAIT_MS)
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    @property
    def chat(self) -> Locator:
        return self.page.get_by_role("main")

    @property
    def approval(self) -> Locator:
        return self.page.get_by_role("group", name="Approval")

    @property
    def thread_id(self) -> str:
        return self.page.url.partition("#")[2]

    def tool(self, name: str) -> Locator:
        return self.page.get_by_role("group", name=f"Tool {name}")

    async def open(self, app: str, url: str) -> None:
        """Open a front end. CopilotKit loses what is said before its runtime has answered for the first time."""
        if app != "copilotkit-runtime":
            await self.page.goto(url)
            return
        async with self.page.expect_response("**/connect"):
            await self.page.goto(url)

    async def say(self, text: str) -> None:
        composer = self.page.get_by_role("textbox")
        await composer.fill(text)
        await composer.press("Enter")

    async def reads(self, text: str) -> None:
        await expect(self.chat.get_by_text(text, exact=True)).to_have_count(1)

    async def press(self, name: str) -> None:
        await self.page.get_by_role("button", name=name, exact=True).click()

    async def stop(self) -> None:
        """Press Stop, which is the send button of CopilotKit while a run is open."""
        await self.page.get_by_test_id("copilot-send-button").or_(self.page.get_by_role("button", name="Stop")).click()
