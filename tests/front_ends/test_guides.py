"""The blocks of the guides that need packages of npm, run as they are pasted with the packages of ``examples/``."""

import re
import shlex
from uuid import uuid4

import httpx
import pytest

from tests.docs.documents import BLOCKS, NPM
from tests.docs.markdown import Block
from tests.front_ends.driver import NEXTJS
from tests.ports import free_port
from tests.server.sockets.process import program_on
from tests.web.console.driver import ROOT, PageServer

pytestmark = pytest.mark.other_language

SECONDS = 120.0
GUIDES = [block for block in BLOCKS if NPM in block.marks]
EXAMPLES = [block for block in GUIDES if "run dev" in block.text]
RUNTIMES = [block for block in GUIDES if "createServer(" in block.text]
FILES = [block for block in GUIDES if block.file_name in {"index.html", "main.jsx", "vite.config.js"}]
"""Files of apps, which ``test_copied_guide.py`` writes and runs."""
CLIENTS = [block for block in GUIDES if block.language == "js" and "Agent({" in block.text and block not in RUNTIMES]
(ROUTE,) = (block for block in GUIDES if block.language == "ts")
ELSEWHERE = [*CLIENTS, *(block for block in GUIDES if "npm install " in block.text or block == NEXTJS)]
"""What the TypeScript client's tests, ``test_copied_guide.py`` and ``test_front_ends.py`` run."""


# --- the examples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_an_example_is_served_by_the_command_that_is_shown(block: Block, server: PageServer) -> None:
    build, serve = block.text.splitlines()
    assert build == "make front-ends"
    command = shlex.split(serve)
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    command += ["--", "--host", "127.0.0.1", "--port", str(port), "--strictPort"]
    with program_on(url, *command, AGENT_URL=server.url, DO_NOT_TRACK="1"):
        assert '<div id="root">' in httpx.get(url, timeout=SECONDS).text
        assert httpx.get(f"{url}src/main.tsx", timeout=SECONDS).is_success


def test_the_route_of_the_guide_is_that_of_the_example() -> None:
    assert ROUTE.text == (ROOT / "examples/nextjs/src/app/api/agent/route.ts").read_text()


# --- blocks of JavaScript ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", RUNTIMES, ids=str)
def test_the_runtime_of_the_guide_answers_a_page(block: Block, server: PageServer) -> None:
    port = free_port()
    script = block.text.replace("http://localhost:8080/", server.url).replace("4000", str(port))
    folder = ROOT / "examples" / "copilotkit-runtime"
    url = f"http://127.0.0.1:{port}/api/copilotkit"
    with program_on(url, "node", "--input-type=module", "--eval", script, folder=folder, DO_NOT_TRACK="1"):
        message = {"id": str(uuid4()), "role": "user", "content": "think about rain"}
        rest: dict[str, object] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
        body = {"threadId": str(uuid4()), "runId": str(uuid4()), "messages": [message], **rest}
        answer = httpx.post(f"{url}/agent/default/run", json=body, timeout=SECONDS).text
    deltas = re.findall(r'"type":"TEXT_MESSAGE_CONTENT".*?"delta":"(.*?)"', answer)
    assert "".join(deltas) == "I have thought about rain."


def test_every_block_that_needs_npm_is_run_or_checked() -> None:
    tried = [*EXAMPLES, *RUNTIMES, *FILES, ROUTE, *ELSEWHERE]
    assert [block for block in GUIDES if block not in tried] == []
