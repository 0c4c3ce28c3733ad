"""The built front ends of ``examples/``, each served as ``npm run preview`` serves it, and a user of one."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.async_api import Locator, Page, expect

from tests.console.driver import ROOT
from tests.ports import free_port
from tests.sockets.process import program_on

VITE = ("node", "node_modules/vite/bin/vite.js")
PREVIEW = (*VITE, "preview", "--host", "127.0.0.1", "--strictPort", "--port")


@contextmanager
def previewed(app: str, agent_url: str) -> Iterator[str]:
    """Serve a built front end in front of an agent server; yield its address."""
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
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    @property
    def chat(self) -> Locator:
        """The messages, without the list of threads."""
        return self.page.get_by_role("main")

    @property
    def approval(self) -> Locator:
        """The question whether a tool may run."""
        return self.page.get_by_role("group", name="Approval")

    @property
    def thread_id(self) -> str:
        """The thread, which stands in the address."""
        return self.page.url.partition("#")[2]

    def tool(self, name: str) -> Locator:
        """The card of a tool call."""
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
        """Wait until exactly one message has this text."""
        await expect(self.chat.get_by_text(text, exact=True)).to_have_count(1)

    async def press(self, name: str) -> None:
        await self.page.get_by_role("button", name=name, exact=True).click()

    async def stop(self) -> None:
        """Press Stop, which is the send button of CopilotKit while a run is open."""
        await self.page.get_by_test_id("copilot-send-button").or_(self.page.get_by_role("button", name="Stop")).click()
