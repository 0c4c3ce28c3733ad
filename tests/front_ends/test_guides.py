"""The blocks of the guides that need packages of npm, run as they are pasted with the packages of ``examples/``."""

import asyncio
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Browser

from tests.console.driver import ROOT, PageServer, missing
from tests.docs.documents import BLOCKS, NPM
from tests.docs.markdown import Block, Document
from tests.front_ends.driver import Visitor, need_app, wait_until_served
from tests.ports import free_port

SECONDS = 120.0
APPS = ("copilotkit-direct", "copilotkit-runtime", "assistant-ui")
READMES = [Document.read(ROOT / "examples" / app / "README.md", ROOT) for app in APPS]
GUIDES = [block for block in BLOCKS if NPM in block.marks]
EXAMPLES = [block for block in GUIDES if "run dev" in block.text]
RUNTIMES = [block for block in GUIDES if "createServer(" in block.text]
COMPONENTS = [block for block in GUIDES if "export " in block.text and block.file_name is None]
FILES = [block for block in GUIDES if block.file_name is not None]
"""Files of an app, which ``test_copied_guide.py`` runs."""
ELSEWHERE = [block for block in GUIDES if "npm install " in block.text or block.file == "docs/typescript.md"]
"""Install commands, which ``tests/docs/test_npm_packages.py`` checks, and what the TypeScript client's tests run."""

SHOW_ASSISTANT_UI = """
import { createRoot } from "react-dom/client";
import { AssistantRuntimeProvider } from "@assistant-ui/react";
import { Chat } from "./src/chat";
const Page = () => <AssistantRuntimeProvider runtime={useChat()}><Chat /></AssistantRuntimeProvider>;
createRoot(document.getElementById("root")).render(<Page />);
"""


# --- the examples -----------------------------------------------------------------------------------------------------


@contextmanager
def started(command: list[str], *, folder: Path, url: str, stdin: str = "", **variables: str) -> Iterator[None]:
    """Run a program that serves ``url`` until the end of the block."""
    with tempfile.TemporaryFile("w+") as script:
        script.write(stdin)
        script.seek(0)
        environment = {**os.environ, "DO_NOT_TRACK": "1", **variables}
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=script,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        try:
            wait_until_served(url, process)
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # npm and what it has started
            process.wait()


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_an_example_is_served_by_the_command_that_is_shown(block: Block, server: PageServer) -> None:
    build, serve = block.text.splitlines()
    assert build == "make front-ends"
    command = shlex.split(serve)
    need_app(Path(command[2]).name)
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    command += ["--", "--host", "127.0.0.1", "--port", str(port), "--strictPort"]
    with started(command, folder=ROOT, url=url, AGENT_URL=server.url):
        assert '<div id="root">' in httpx.get(url, timeout=SECONDS).text
        assert httpx.get(f"{url}src/main.tsx", timeout=SECONDS).is_success


@pytest.mark.parametrize("readme", READMES, ids=lambda readme: readme.name)
def test_the_readme_of_an_example_shows_the_commands_of_the_guide(readme: Document) -> None:
    (serve,) = (block.text for block in BLOCKS if block.file == "docs/clients.md" and "serves" in block.marks)
    folder = readme.name.removesuffix("/README.md")
    assert [block.text for block in readme.blocks] == [serve, f"make front-ends\nnpm --prefix {folder} run dev\n"]


# --- blocks of JavaScript ---------------------------------------------------------------------------------------------


def bundled(block: Block) -> str:
    """Return a script that shows the component of a block. It is bundled with the packages of an example."""
    esbuild = ROOT / "clients" / "web" / "node_modules" / ".bin" / "esbuild"
    if not esbuild.exists():
        missing("clients/web/node_modules is missing; `make web-tools` installs it")
    need_app("assistant-ui")
    done = subprocess.run(
        [
            *(esbuild, "--bundle", "--format=esm", "--jsx=automatic", '--define:process.env.NODE_ENV="production"'),
            *("--loader=jsx", *(f"--loader:.{kind}=empty" for kind in ("css", "ttf", "woff", "woff2"))),
        ],
        input=block.text + SHOW_ASSISTANT_UI,
        cwd=ROOT / "examples" / "assistant-ui",
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.asyncio(loop_scope="package")
@pytest.mark.parametrize("block", COMPONENTS, ids=str)
async def test_a_component_of_the_guide_is_a_chat(block: Block, server: PageServer, browser: Browser) -> None:
    address = server.url.removeprefix("http://").rstrip("/")
    script = (await asyncio.to_thread(bundled, block)).replace("localhost:8080", address)
    visitor = Visitor(await browser.new_page())
    await visitor.page.goto(f"{server.url}ping")  # the page has the origin of the agent server
    await visitor.page.set_content('<div id="root"></div>')
    await visitor.page.add_script_tag(content=script, type="module")
    await visitor.say("think about rain")
    await visitor.reads("I have thought about rain.")
    await visitor.page.close()
    assert visitor.complaints == []


@pytest.mark.parametrize("block", RUNTIMES, ids=str)
def test_the_runtime_of_the_guide_answers_a_page(block: Block, server: PageServer) -> None:
    need_app("copilotkit-runtime")
    port = free_port()
    script = block.text.replace("http://localhost:8080/", server.url).replace("4000", str(port))
    folder = ROOT / "examples" / "copilotkit-runtime"
    url = f"http://127.0.0.1:{port}/api/copilotkit"
    with started(["node", "--input-type=module"], folder=folder, url=f"{url}/info", stdin=script):
        message = {"id": str(uuid4()), "role": "user", "content": "think about rain"}
        rest: dict[str, object] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
        body = {"threadId": str(uuid4()), "runId": str(uuid4()), "messages": [message], **rest}
        answer = httpx.post(f"{url}/agent/default/run", json=body, timeout=SECONDS).text
    deltas = re.findall(r'"type":"TEXT_MESSAGE_CONTENT".*?"delta":"(.*?)"', answer)
    assert "".join(deltas) == "I have thought about rain."


def test_every_block_that_needs_npm_is_run_or_checked() -> None:
    tried = [*EXAMPLES, *RUNTIMES, *COMPONENTS, *FILES, *ELSEWHERE]
    assert [block for block in GUIDES if block not in tried] == []
