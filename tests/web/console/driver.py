"""A user of the chat page, and the servers that serve it."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx
from playwright.async_api import Locator, Page, Request, Route, expect

from tests.contexts import run_input
from tests.machine import find_program
from tests.ports import free_port
from tests.server.sockets.process import WARNINGS, ServerProcess
from tests.sse import events_of

ROOT = Path(__file__).parents[3]
WAIT_MS = 120_000

AXE = ROOT / "clients/web/node_modules/axe-core/axe.min.js"
"""``make node`` installs it."""

# A colour that is inherited changes in one transition after the other.
FIND_VIOLATIONS = """async (theme) => {
    await new Promise(requestAnimationFrame);
    while (document.getAnimations().length > 0)
        await Promise.allSettled(document.getAnimations().map(({ finished }) => finished));
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) => `${theme}: ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}"""

# The page's policy does not let Playwright's `wait_for_function` ask a second time.
READ_COPIED = """async () => {
    let copied = "";
    while (copied === "") copied = await navigator.clipboard.readText();
    return copied;
}"""

SCROLLED_TO_END = """async () => {
    await new Promise(requestAnimationFrame);
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector(".scroll");
    return scrollHeight > clientHeight && scrollHeight - scrollTop - clientHeight < 2;
}"""

PHONE = {"width": 390, "height": 844}

POLICY = '[{"tool_pattern": "calculate", "policy": "ask", "reason": "sums cost money", "category": "cost"}]'

expect.set_options(timeout=WAIT_MS)


def published_apps() -> list[dict[str, object]]:
    """MCP servers of npm whose tools have apps: ``budget`` and ``debug``, as entries of ``AGUI_MCP_SERVERS``."""
    modules = ROOT / "tests/js/node_modules/@modelcontextprotocol"
    folders = {"budget": "server-budget-allocator", "debug": "server-debug"}
    return [
        {"name": name, "command": find_program("node"), "args": [str(modules / folder / "dist/index.js"), "--stdio"]}
        for name, folder in folders.items()
    ]


CALL_BUDGET, CALL_DEBUG = "call budget_get-budget-data {}", "call debug_debug-tool {}"


def command_of(request: Request) -> str:
    """The type of the command that a request of the page sends; empty for a run."""
    command = json.loads(request.post_data or "{}").get("command", {})
    return str(command.get("type", ""))


def chromium() -> str:
    """The machine's Chromium. The shell without a window takes a third less of the processor."""
    return find_program("chromium-headless-shell", "chromium", "chromium-browser")


class PageServer:
    """A server that listens on the same port whenever it is started. By default it serves the built-in assistant."""

    def __init__(self, module: str = "agui_container", **settings: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/"
        self._command = (sys.executable, *WARNINGS, "-m", module, "serve")
        self._settings = {"AGUI_AGENT": "assistant", "AGUI_PORT": str(port), **settings}
        self._process: ServerProcess | None = None

    def start(self) -> None:
        self._process = ServerProcess(self._command, **self._settings)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()


@contextmanager
def serve_page(module: str = "agui_container", **settings: str) -> Iterator[PageServer]:
    server = PageServer(module, **settings)
    server.start()
    try:
        yield server
    finally:
        server.kill()


async def release(url: str) -> None:
    """Let the runs of ``slowly`` at a server go on, as another caller."""
    async with httpx.AsyncClient(timeout=WAIT_MS / 1000) as client:
        body = run_input("release").model_dump(mode="json", by_alias=True, exclude_none=True)
        ids = {"threadId": str(uuid4()), "runId": str(uuid4())}
        (await client.post(f"{url}invocations", json=body | ids)).raise_for_status()


async def curl(command: str, **environment: str) -> list[str]:
    """Run a copied command in a shell; gives the types of the events that it prints."""
    shell = await asyncio.create_subprocess_exec(
        "bash", "-c", command, env=os.environ | environment, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(WAIT_MS / 1000):
        printed, _ = await shell.communicate()
    return [event["type"] for event in events_of(printed)]


NO_NETWORK = ("Failed to load resource", "Failed to fetch", "WebSocket connection to", "ERR_")
"""Parts of the errors that a browser writes for requests that were refused, or that no server has answered."""


@dataclass(slots=True)
class Complaints:
    """Errors in the consoles of all tabs of a profile, and parts of those that its test expects."""

    texts: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    @property
    def unexpected(self) -> list[str]:
        return [text for text in self.texts if not any(part in text for part in self.expected)]

    def clear(self) -> None:
        self.texts.clear()
        self.expected.clear()


class User:
    """One browser tab. A test fails after its end if a console has an error that it does not expect."""

    def __init__(self, page: Page, complaints: Complaints) -> None:
        self.page = page
        self.complaints = complaints

    @property
    def composer(self) -> Locator:
        return self.page.get_by_label("Message", exact=True)

    @property
    def conversation(self) -> Locator:
        return self.page.get_by_role("log", name="Conversation")

    @property
    def messages(self) -> Locator:
        return self.conversation.get_by_role("article", name="You", exact=True)

    def expect_complaints(self, *parts: str) -> None:
        """Expect errors with these parts, whenever the browser writes them."""
        self.complaints.expected.extend(parts)

    async def break_commands(self, *types: str) -> None:
        """Let no server answer commands of these types, until ``unroute_all``."""

        async def answer(route: Route) -> None:
            if command_of(route.request) in types:
                await route.abort("connectionrefused")
            else:
                await route.fallback()

        await self.page.route("**/invocations", answer)
        self.expect_complaints(*NO_NETWORK)

    async def open_tab(self, address: str) -> "User":
        other = User(await self.page.context.new_page(), self.complaints)
        await other.page.goto(address)
        return other

    async def say(self, text: str) -> None:
        await self.composer.fill(text)
        if await self.page.evaluate("matchMedia('(pointer: coarse)').matches"):
            await self.press("Send")
        else:
            await self.composer.press("Enter")

    async def reads(self, text: str) -> None:
        await expect(self.conversation).to_contain_text(text)

    async def answer(self) -> str:
        """The text of the only answer, as it is shown now."""
        return (await self.conversation.locator(".markdown").inner_text()).strip()

    async def is_done(self) -> None:
        await expect(self.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
        await expect(self.conversation).to_have_attribute("aria-busy", "false")

    async def press(self, name: str) -> None:
        await self.page.get_by_role("button", name=name, exact=True).click()

    async def inspect(self, tab: str) -> None:
        await self.press("Inspector")
        await self.page.get_by_role("tab", name=tab).click()

    async def copies(self, name: str) -> str:
        """Press a button that copies; gives the text on the clipboard."""
        await self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await self.page.evaluate("navigator.clipboard.writeText('')")
        await self.press(name)
        async with asyncio.timeout(WAIT_MS / 1000):
            copied: str = await self.page.evaluate(READ_COPIED)
        return copied

    async def violations(self) -> list[str]:
        """Problems that axe-core finds in the page, in both themes. It is put in past the page's policy."""
        if await self.page.evaluate("typeof axe") == "undefined":
            devtools = await self.page.context.new_cdp_session(self.page)
            await devtools.send("Runtime.evaluate", {"expression": AXE.read_text()})
        found: list[str] = []
        for theme in ("light", "dark"):
            await self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            found += await self.page.evaluate(FIND_VIOLATIONS, theme)
        return found

    @property
    def threads(self) -> Locator:
        return self.page.get_by_role("navigation", name="Threads")

    @property
    def items(self) -> Locator:
        return self.threads.get_by_role("listitem")

    async def gets_focus(self) -> None:
        """Let the page do what it does when its tab gets the focus."""
        await self.page.evaluate("window.dispatchEvent(new Event('focus'))")

    async def finishes(self, *texts: str) -> None:
        for text in texts:
            await self.say(text)
            await self.is_done()

    async def reaches_end(self) -> None:
        """Wait until the end of a conversation that can scroll is shown."""
        await self.page.wait_for_function(SCROLLED_TO_END)

    async def is_at_end(self) -> bool:
        """Wait for a frame, and return True if the end of a conversation that can scroll is shown."""
        at_end: bool = await self.page.evaluate(SCROLLED_TO_END)
        return at_end

    def call(self, name: str) -> Locator:
        return self.conversation.locator(f"[data-call='{name}']").last
