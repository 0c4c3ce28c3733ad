"""The examples of the documents run as they are pasted, with the output that is shown."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import httpx
import pytest
from _pytest.mark import ParameterSet

from agui_container.settings import Settings
from tests.auth.issuer import issuer_process
from tests.docs.documents import (
    BLOCKS,
    DOCUMENTS,
    ISSUER,
    MARKS,
    NOT_RUN,
    RAISES,
    ROOT,
    SAYS,
    SERVES,
    THERE,
    DocumentedServer,
    output_of,
    scenes,
)
from tests.docs.markdown import Block
from tests.engine.doubles import WAIT
from tests.machine import find_program
from tests.official.judge import JS
from tests.protocols.grpc.clients_on_node import BUF
from tests.server.sockets.process import ServerProcess

RUN = {
    "bash": ["bash", "-euo", "pipefail"],
    "python": [sys.executable, "-W", "error"],
    "js": ["node", "--input-type=module"],
}
SHOWN = {"text", "diff", "dockerfile", "html", "json", "jsx", "toml", "ts", "yaml"}
SECONDS = 120.0
USUAL_ISSUER = "localhost:9000"
CUT = "--- the next block ---"
SCENES = [scene for document in DOCUMENTS for scene in scenes(document)]
SHORT = ("README.md", "docs/index.md")

RUN_IDS = count(1)


def marked(block: Block, value: object) -> ParameterSet:
    mark = pytest.mark.wire if block.file in SHORT else pytest.mark.other_language
    return pytest.param(value, marks=mark, id=str(value))


def is_run(block: Block) -> bool:
    return block.language in RUN and not {*NOT_RUN, SERVES, ISSUER, THERE} & {*block.marks} and block.file_name is None


def run(language: str, text: str, port: int, issuer: str = USUAL_ISSUER) -> str:
    done = subprocess.run(
        RUN[language],
        input=here(text.replace("localhost:8080", f"127.0.0.1:{port}").replace(USUAL_ISSUER, issuer)),
        cwd=JS if language == "js" else ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def here(text: str) -> str:
    return text.replace(".venv/bin/python", sys.executable).replace("npx buf", str(BUF))


@contextmanager
def issuer_of(scene: DocumentedServer) -> Iterator[str]:
    commands = [block.text.strip() for block in BLOCKS if block.file == scene.start.file and ISSUER in block.marks]
    if not commands:
        yield USUAL_ISSUER
        return
    assert commands == ["make issuer"]
    with issuer_process() as url:
        yield url.removeprefix("http://")


def check_output(block: Block, printed: str) -> None:
    shown = output_of(block)
    if shown is not None:
        pattern = ".*".join(map(re.escape, shown.strip().split("…")))
        assert re.fullmatch(pattern, printed.strip(), re.DOTALL), f"{block}: {printed}"


def need_node(blocks: Sequence[Block]) -> None:
    if any(block.language == "js" or "npx buf" in block.text for block in blocks):
        find_program("node")


def ask(server: ServerProcess, thread: str, said: str = "hello", run_id: str | None = None) -> str:
    message = {"id": "m1", "role": "user", "content": said}
    body = {"threadId": thread, "runId": run_id or f"run-{next(RUN_IDS)}", "messages": [message]}
    return httpx.post(f"http://127.0.0.1:{server.port}/invocations", json=body, timeout=SECONDS).text


def text_of(stream: str) -> str:
    deltas = re.findall(r'^data: {"type":"TEXT_MESSAGE_CONTENT".*"delta":(".*")}$', stream, re.MULTILINE)
    return "".join(json.loads(delta) for delta in deltas)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(AGUI_AGENT="assistant") as running:
        # The run of the first example, to which later ones come back when they are tested alone.
        ask(running, thread="t1", said="calculate 2*(3+4)", run_id="r")
        yield running


@pytest.mark.parametrize("block", [marked(block, block) for block in BLOCKS if is_run(block)])
def test_an_example_runs_as_pasted_and_gives_the_output_that_is_shown(block: Block, server: ServerProcess) -> None:
    need_node([block])
    check_output(block, run(block.language, block.text, server.port))
    assert not server.faults


def settings_of(start: Block) -> dict[str, str]:
    *settings, command, argument = shlex.split(start.text.replace("\\\n", " "))
    if settings[-1:] == ["agui"]:
        settings[-1], command, argument = f"AGUI_AGENT={argument}", "make", "run"
    assert (command, argument) == ("make", "run")
    chosen = dict(setting.split("=", 1) for setting in settings)
    known = {f"AGUI_{name.upper()}" for name in Settings.model_fields}
    assert {name for name in chosen if not name.startswith("AWS_")} <= known
    return chosen


def environment(scene: DocumentedServer, folder: Path, issuer: str) -> Mapping[str, str]:
    for block in BLOCKS:
        if block.file_name is not None and block.file == scene.start.file:
            (folder / block.file_name).write_text(block.text)
    chosen = {name: here(value).replace(USUAL_ISSUER, issuer) for name, value in settings_of(scene.start).items()}
    return {
        "AGUI_AGENT": "assistant",
        **chosen,
        "AGUI_PORT": "0",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'app'}:{ROOT / 'clients/python/src'}:{folder}",
    }


def converse(server: ServerProcess, says: Block) -> None:
    lines = says.text.splitlines()
    for question, answer in zip(lines[::2], lines[1::2], strict=True):
        stream = ask(server, thread="t", said=question.removeprefix("> "))
        assert '"name":"tools.unavailable"' not in stream
        assert text_of(stream).strip() == answer, says


def act(server: ServerProcess, acts: Sequence[Block], issuer: str) -> None:
    """Run the blocks after the start. Shell blocks share one shell, as they do for a reader."""
    need_node(acts)
    shell = [block for block in acts if block.language == "bash"]
    for block in acts:
        if SAYS in block.marks:
            converse(server, block)
        elif block not in shell:
            check_output(block, run(block.language, block.text, server.port, issuer))
    script = f"\necho '{CUT}'\n".join(block.text for block in shell)
    printed = run("bash", script, server.port, issuer) if shell else ""
    for block, part in zip(shell, printed.split(CUT), strict=False):
        check_output(block, part)


@pytest.mark.parametrize("scene", [marked(scene.start, scene) for scene in SCENES])
def test_a_server_that_is_started_as_shown_does_what_is_shown(scene: DocumentedServer, tmp_path: Path) -> None:
    with issuer_of(scene) as issuer, ServerProcess(**environment(scene, tmp_path, issuer)) as running:
        if scene.acts:
            act(running, scene.acts, issuer)
        elif not scene.needs:
            answer = ask(running, thread="t")
            assert '"type":"TEXT_MESSAGE_CONTENT"' in answer
            assert '"outcome":{"type":"success"}' in answer
        assert httpx.get(f"http://127.0.0.1:{running.port}/ping", timeout=WAIT).is_success
        assert bool(running.faults) is (RAISES in scene.start.marks)


def test_every_block_is_run_or_says_why_not() -> None:
    for block in BLOCKS:
        assert block.language in RUN.keys() | SHOWN, f"{block}: what is to be done with {block.language!r}?"
        assert all(mark in MARKS or mark.startswith("file=") for mark in block.marks), block


def test_every_block_for_a_server_follows_its_start() -> None:
    done = [block for scene in SCENES for block in scene.acts if not scene.needs]
    assert [block for block in BLOCKS if {SAYS, THERE} & {*block.marks} and block not in done] == []


def test_agents_that_a_reader_is_to_write_are_served_by_an_example() -> None:
    for block in BLOCKS:
        name = block.file_name or ""
        if name.endswith(".py") and not (ROOT / "examples" / name).exists():
            served = [scene.start.text for scene in SCENES if scene.start.file == block.file]
            assert re.search(rf"[= \"]({name.removesuffix('.py')}):\w+[,\"\s]", "\n".join(served)), block


def test_shell_examples_that_are_not_run_can_be_parsed() -> None:
    for block in BLOCKS:
        if block.language == "bash":
            subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
        if block.language == "python":
            compile(block.text, str(block), "exec")
