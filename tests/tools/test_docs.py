"""docs/tools.md: every block runs, every conversation goes as shown, and the tables are those of the code."""

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from ag_ui.core import CustomEvent, TextMessageContentEvent, ToolCallResultEvent

from app.agents.assistant import Assistant
from app.models.offline import OfflineModel
from app.ports import ToolContent
from app.tools.builtin import builtin_tools
from app.tools.loader import load_tools
from app.tools.mcp import mcp_sources
from app.tools.mcp.servers import HttpServer, StdioServer, parse_servers
from tests.contexts import collected, of_type, run_context, run_input
from tests.docs.markdown import Block, Document, code

ROOT = Path(__file__).parents[2]
TOOLS = Document.read(ROOT / "docs" / "tools.md", ROOT)
CONVERSATIONS = [
    (serves, says)
    for serves, says in zip(TOOLS.blocks, TOOLS.blocks[1:], strict=False)
    if "serves" in serves.marks and "says" in says.marks
]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The files that a reader is to write."""
    written = [block for block in TOOLS.blocks if block.file_name]
    for block in written:
        (tmp_path / str(block.file_name)).write_text(block.text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(ROOT)
    yield
    for block in written:
        sys.modules.pop(str(block.file_name).removesuffix(".py"), None)


def configured(serves: Block) -> Assistant:
    """The assistant of a server that is started as shown."""
    *settings, make, target = shlex.split(serves.text)
    assert (make, target) == ("make", "run")
    chosen = dict(setting.split("=", 1) for setting in settings)
    assert chosen.keys() <= {"AGUI_TOOLS", "AGUI_MCP_SERVERS"}
    tools = load_tools(chosen["AGUI_TOOLS"]) if "AGUI_TOOLS" in chosen else ()
    servers = parse_servers(chosen.get("AGUI_MCP_SERVERS", "[]").replace('"python"', f'"{sys.executable}"'))
    return Assistant(OfflineModel(), (*builtin_tools(), *tools), sources=mcp_sources(servers))


async def said(assistant: Assistant, message: str) -> str:
    items = await collected(assistant.run(run_input(message), run_context()))
    assert of_type(items, CustomEvent) == []
    return "".join(event.delta for event in of_type(items, TextMessageContentEvent))


async def result(reference: str) -> ToolContent:
    """What the only tool of a file gives."""
    assistant = Assistant(OfflineModel(), load_tools(reference))
    items = await collected(assistant.run(run_input(f"call {reference.partition(':')[2]}"), run_context()))
    (event,) = of_type(items, ToolCallResultEvent)
    return event.content


@pytest.mark.parametrize(("serves", "says"), CONVERSATIONS, ids=str)
async def test_a_conversation_goes_as_shown(serves: Block, says: Block) -> None:
    lines = says.text.splitlines()
    async with AsyncExitStack() as stack:
        assistant = configured(serves)
        for source in assistant.sources:
            stack.push_async_callback(source.aclose)
        for question, answer in zip(lines[::2], lines[1::2], strict=True):
            assert await said(assistant, question.removeprefix("> ")) == answer


async def test_a_tool_knows_its_context() -> None:
    assert await result("my_context_tools:whoami") == "thread"


async def test_a_tool_gives_parts() -> None:
    content = await result("my_pictures:draw")
    assert isinstance(content, list)
    assert [part.type for part in content] == ["text", "image"]


@pytest.mark.parametrize(
    "block",
    [block for block in TOOLS.blocks if block.language == "python" and not block.file_name],
    ids=str,
)
def test_a_block_of_python_makes_an_agent(block: Block) -> None:
    names: dict[str, object] = {}
    exec(compile(block.text, str(block), "exec"), names)  # noqa: S102 - our own document
    assert isinstance(names["agent"], Assistant)


def test_no_block_is_left_out() -> None:
    shown = {block for pair in CONVERSATIONS for block in pair}
    assert [block for block in TOOLS.blocks if block not in shown and block.language != "python"] == []


def test_the_table_of_servers_has_every_field() -> None:
    rows = {name: code(default) for field, default, _ in TOOLS.table("field") for name in re.findall(r"`(\w+)`", field)}
    fields = {**HttpServer.model_fields, **StdioServer.model_fields}
    assert rows.keys() == fields.keys()
    for name in ("timeout", "connect_timeout"):
        assert rows[name] == f"{fields[name].default:g}"


def test_paths_are_there() -> None:
    paths = [span for span in TOOLS.spans if re.fullmatch(r"(app|examples|docs)/[\w/.]+", span)]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
