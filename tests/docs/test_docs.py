"""The examples run as they are pasted, and the tables, paths and lists are those of the code."""

import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import app
from app.core.errors import TABLE
from app.core.inbound import COMMANDS
from app.engine.policy import Limits
from app.main import create_app
from app.models.script import RULES
from app.settings import Settings
from tests.docs.markdown import Block, Document, code
from tests.official.judge import JS, missing
from tests.sockets.process import Server

ROOT = Path(__file__).parents[2]
README = Document.read(ROOT / "README.md", ROOT)
ARCHITECTURE = Document.read(ROOT / "docs" / "architecture.md", ROOT)
DECISIONS = [Document.read(path, ROOT) for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
CHANGELOG = Document.read(ROOT / "CHANGELOG.md", ROOT)
DOCUMENTS = [README, ARCHITECTURE, *DECISIONS, CHANGELOG]
BLOCKS = [block for document in DOCUMENTS for block in document.blocks]

NOT_RUN = {
    "needs-aws": "needs an AWS account",
    "needs-docker": "needs a Docker engine with buildx",
    "not-here": "would run this test inside itself",
}
SERVES = "serves"
RUN = {
    "bash": ["bash", "-euo", "pipefail"],
    "python": [sys.executable, "-W", "error"],
    "js": ["node", "--input-type=module"],
}
SHOWN = {"text", "dockerfile"}
SECONDS = 20.0


def is_run(block: Block) -> bool:
    return block.language in RUN and not {*NOT_RUN, SERVES} & {*block.marks} and block.file_name is None


def output_of(block: Block) -> str | None:
    """The output that the document promises: a block that follows and is marked as such."""
    following = BLOCKS[BLOCKS.index(block) + 1 :][:1]
    return next((other.text for other in following if other.marks == ("output",)), None)


def pattern(shown: str) -> str:
    """Output as a document shows it; ``…`` stands for anything."""
    return ".*".join(map(re.escape, shown.strip().split("…")))


# --- examples ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(AGUI_AGENT="assistant") as running:
        ask(running, thread="t1")  # the run that later examples come back to, for when they are tested alone
        yield running


def ask(server: Server, thread: str) -> str:
    body = {"threadId": thread, "runId": "r", "messages": [{"id": "m", "role": "user", "content": "hello"}]}
    return httpx.post(f"http://127.0.0.1:{server.port}/invocations", json=body, timeout=SECONDS).text


def need_node() -> None:
    reason = missing()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def test_every_block_is_run_or_says_why_not() -> None:
    marks = {*NOT_RUN, SERVES, "output", "tree"}
    for block in BLOCKS:
        assert block.language in RUN.keys() | SHOWN, f"{block}: what is to be done with {block.language!r}?"
        assert all(mark in marks or mark.startswith("file=") for mark in block.marks), block


@pytest.mark.parametrize("block", [block for block in BLOCKS if is_run(block)], ids=str)
def test_an_example_runs_as_pasted_and_gives_the_output_that_is_shown(block: Block, server: Server) -> None:
    if block.language == "js":
        need_node()
    script = block.text.replace("localhost:8080", f"127.0.0.1:{server.port}").replace(
        ".venv/bin/python", sys.executable
    )
    done = subprocess.run(
        RUN[block.language],
        input=script,
        cwd=JS if block.language == "js" else ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = output_of(block)
    if shown is not None:
        assert re.fullmatch(pattern(shown), done.stdout.strip(), re.DOTALL), done.stdout
    assert not server.faults


@pytest.mark.parametrize("block", [block for block in BLOCKS if SERVES in block.marks], ids=str)
def test_a_server_that_is_started_as_shown_answers(block: Block, tmp_path: Path) -> None:
    *settings, make, target = block.text.split()
    assert (make, target) == ("make", "run")
    for other in BLOCKS:
        if other.file_name is not None:
            (tmp_path / other.file_name).write_text(other.text)
    chosen = dict(setting.split("=", 1) for setting in settings)
    assert chosen.keys() <= {f"AGUI_{name.upper()}" for name in Settings.model_fields}
    environment = {"AGUI_AGENT": "assistant", **chosen, "AGUI_PORT": "0", "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    with Server(**environment) as running:
        answer = ask(running, thread="t")
        assert not running.faults
    assert '"type":"TEXT_MESSAGE_CONTENT"' in answer
    assert '"outcome":{"type":"success"}' in answer


def test_files_that_a_reader_is_to_write_are_served_by_an_example() -> None:
    served = "\n".join(block.text for block in BLOCKS if SERVES in block.marks)
    for block in BLOCKS:
        if block.file_name is not None:
            assert f"AGUI_AGENT={block.file_name.removesuffix('.py')}:agent " in served


def test_shell_examples_that_are_not_run_can_be_parsed() -> None:
    for block in BLOCKS:
        if block.language == "bash":
            subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
        if block.language == "python":
            compile(block.text, str(block), "exec")


# --- tables -----------------------------------------------------------------------------------------------------------


def shown_default(value: object) -> str:
    if value in ((), ""):
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_the_settings_table_is_the_settings_class() -> None:
    rows = {code(variable): code(default) for variable, default, _ in README.table("variable")}
    assert rows == {
        f"AGUI_{name.upper()}": shown_default(field.default) for name, field in Settings.model_fields.items()
    }
    assert list(rows) == [f"AGUI_{name.upper()}" for name in Settings.model_fields]


def test_the_routes_table_is_what_the_application_serves() -> None:
    paths = create_app(Settings()).openapi()["paths"]
    served = {f"{method.upper()} {path.replace('run_id', 'runId')}" for path in paths for method in paths[path]}
    # OpenAPI describes neither sockets nor itself.
    assert {code(route) for route, _ in README.table("route")} == served | {"GET /ws"}


def test_the_errors_table_is_the_table_of_the_code() -> None:
    rows = [(code(name), int(http), int(close), retry) for name, http, close, retry, _ in README.table("code")]
    assert rows == [
        (name.value, row.http, row.ws_close, "yes" if row.retryable else "no") for name, row in TABLE.items()
    ]


def test_the_commands_table_has_every_command() -> None:
    named = [command for command, _ in README.table("command", after="## Commands")]
    assert named == [f'`{{"type":"{command}"}}`' for command in COMMANDS]


def test_the_offline_models_table_shows_every_rule() -> None:
    messages = [code(message) for message, _ in README.table("message")]
    shown = [[message for message in messages if rule.pattern.fullmatch(message)] for rule in RULES]
    assert all(shown)
    assert [message for message in messages if message not in itertools.chain(*shown)] == ["anything else"]


def test_the_bounds_are_those_of_the_code() -> None:
    limits, constants = (ARCHITECTURE.table("what", after=text) for text in ("## Bounds", "These are `Limits`"))
    default = Limits()
    assert [(code(name), int(bound.replace(",", ""))) for name, bound, _ in limits] == [
        (name, getattr(default, name)) for name in Limits.__dataclass_fields__
    ]
    for name, bound, _ in constants:
        module, _, constant = code(name).rpartition(".")
        assert getattr(importlib.import_module(module), constant) == int(bound.replace(",", "")), name


def test_every_rule_of_the_verifier_has_a_row() -> None:
    assert [rule for rule, *_ in ARCHITECTURE.table("rule")] == [f"V{number}" for number in range(1, 30)]


def test_make_targets_are_those_of_the_makefile() -> None:
    targets = set(re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    listed = {code(command).removeprefix("make ") for command, _ in README.table("command", after="## Work on it")}
    assert listed == targets


# --- paths, names and lists -------------------------------------------------------------------------------------------

TOP = {path.name for path in ROOT.iterdir()}
FILE = re.compile(r"[\w.-]+(/[\w.-]+)*/?")


def looks_like_a_path(span: str) -> bool:
    if not FILE.fullmatch(span):
        return False
    first, slash, _ = span.partition("/")
    return bool(slash and first in TOP) or span in TOP or span.endswith((".lock", ".md", ".toml", ".yml"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_paths_and_links_lead_somewhere(document: Document) -> None:
    assert [span for span in document.spans if looks_like_a_path(span) and not (ROOT / span).exists()] == []
    local = [link for link in document.links if "://" not in link]
    assert [link for link in local if not (ROOT / document.name).parent.joinpath(link).exists()] == []


def test_names_beside_a_file_are_in_it() -> None:
    # "`_agree` in `app/core/sequence.py`"
    named = re.findall(r"`([\w.]+)` in `(app/[\w/]+\.py)`", "\n".join(document.prose for document in DOCUMENTS))
    assert named
    for name, path in named:
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", (ROOT / path).read_text()), f"{name} in {path}"


def test_the_tree_lists_every_file_of_the_application() -> None:
    (tree,) = (block for block in ARCHITECTURE.blocks if "tree" in block.marks)
    listed: list[str] = []
    folders: list[str] = []
    for line in tree.text.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        folders = [*folders[:depth], name]
        if not name.endswith("/"):
            listed.append("".join(folders))
        elif depth:
            listed.append(f"{''.join(folders)}__init__.py")  # a folder's line stands for its package
    assert sorted(listed) == sorted(str(path.relative_to(ROOT)) for path in (ROOT / "app").rglob("*.py"))


def test_decisions_are_numbered_and_say_how_to_undo_them() -> None:
    assert [Path(document.name).name[:5] for document in DECISIONS] == [
        f"{number:04}-" for number in range(1, len(DECISIONS) + 1)
    ]
    for document in DECISIONS:
        title, *sections = re.findall(r"^#+ (.+)$", document.text, re.MULTILINE)
        assert title.startswith(Path(document.name).name[:4])
        assert sections == ["Context", "Choice", "Consequences", "Undo"]


def test_the_changelog_has_this_version() -> None:
    assert f"## [{app.__version__}] - " in CHANGELOG.text


def test_documents_name_no_machine() -> None:
    for document in DOCUMENTS:
        assert not re.search(r"/(home|root|Users|tmp/x|work)/", document.text), document.name


def test_the_tools_that_run_the_examples_are_here() -> None:
    assert shutil.which("bash")
    assert shutil.which("curl")
