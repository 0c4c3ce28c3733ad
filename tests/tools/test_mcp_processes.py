"""MCP servers that are processes: their handshake, lines that are no messages, and their end."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agui_container.ports import RunContext, Tool, ToolError
from agui_container.tools.mcp import session, stdio
from agui_container.tools.mcp.servers import StdioServer
from agui_container.tools.mcp.source import McpSource
from tests.contexts import run_context
from tests.engine.doubles import eventually
from tests.tools.mcp_fixtures import WAIT
from tests.tools.mcp_scripted import ERRORS, RESULTS_WITH_ERROR, too_large

SCRIPT = str(Path(__file__).with_name("mcp_process.py"))

Start = Callable[..., McpSource]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    sources: list[McpSource] = []

    def start(*habits: str, **settings: object) -> McpSource:
        fields = {"name": "demo", "command": sys.executable, "args": [SCRIPT, *habits], "tool_prefix": "", **settings}
        sources.append(McpSource(StdioServer.model_validate(fields)))
        return sources[-1]

    yield start
    for source in sources:
        await source.aclose()


async def _tool(source: McpSource, ctx: RunContext | None = None) -> Tool:
    (tool,) = await source.tools(ctx or run_context())
    return tool


async def _call(source: McpSource, size: int = 0) -> object:
    return await (await _tool(source)).call({"size": size}, run_context())


def _processes(capfd: pytest.CaptureFixture[str]) -> list[int]:
    """Return the ids of the processes that were started since the last call."""
    return [int(found) for found in re.findall(r"begin (\d+)", capfd.readouterr().err)]


def _is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_process_that_exits_at_the_newest_handshake_is_started_with_the_older_one(
    start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    source = start("exits")
    assert await _call(source) == "carried out"
    assert len(_processes(capfd)) == 2
    await source.aclose()
    assert await _call(source) == "carried out"
    assert len(_processes(capfd)) == 1


async def test_a_process_that_does_not_answer_the_newest_handshake_is_started_with_the_older_one(
    start: Start, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PROBE_SHARE", 0.02)
    source = start("silent")
    assert await _call(source) == "carried out"
    monkeypatch.undo()
    await source.aclose()
    assert _processes(capfd)
    assert await asyncio.wait_for(_call(source), WAIT / 2)  # the newest handshake would take as long
    assert len(_processes(capfd)) == 1


async def test_a_process_that_refuses_the_newest_handshake_is_not_started_again(
    start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await _call(start()) == "carried out"
    assert len(_processes(capfd)) == 1


async def test_lines_that_are_no_messages_do_not_end_the_session(
    start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    source = start("binary")
    assert [await _call(source) for _ in range(2)] == ["carried out"] * 2
    assert len(_processes(capfd)) == 1


async def test_text_of_another_encoding_is_read_as_far_as_possible(start: Start) -> None:
    assert await _call(start("latin")) == "caf\ufffd"


async def test_halves_of_symbols_lose_neither_tools_nor_results(start: Start) -> None:
    source = start("half")
    assert (await _tool(source)).spec.description == "Says: cut \ufffd"
    assert await _call(source) == "cut \ufffd"


async def test_an_answer_that_cannot_be_read_ends_its_call_and_not_the_session(
    start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    source = start("broken")
    with pytest.raises(ToolError, match=r"^echo was carried out, but its result cannot be read\.$"):
        await _call(source)
    assert await _call(source, 5) == "xxxxx"
    assert len(_processes(capfd)) == 1


@pytest.mark.parametrize(("sent", "words"), ERRORS.values(), ids=ERRORS)
async def test_a_malformed_error_is_a_failed_call(start: Start, sent: str, words: str) -> None:
    source = start(sent, timeout=WAIT)
    with pytest.raises(ToolError) as caught:
        await _call(source)
    assert str(caught.value) == words
    assert await _call(source) == "carried out"


@pytest.mark.parametrize("digits", [400, 5_000])
async def test_integers_that_are_too_large_are_null(start: Start, digits: int) -> None:
    assert await _call(start(too_large(digits))) == '{"n":null,"m":[null,1]}'


@pytest.mark.parametrize("sent", RESULTS_WITH_ERROR.values(), ids=RESULTS_WITH_ERROR)
async def test_an_error_that_is_empty_leaves_the_result(start: Start, sent: str) -> None:
    assert await _call(start(sent)) == "carried out"


async def test_an_error_over_the_limit_is_a_failed_call(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_MESSAGE_BYTES", 100_000)
    source = start(f'{{"jsonrpc":"2.0","id":ID,"error":{{"code":1,"message":"{"x" * 100_000}"}}}}')
    with pytest.raises(ToolError, match=r"^The server reported an error that cannot be read\.$"):
        await _call(source)


@pytest.mark.parametrize(
    "habits", [(), ("id last",), ("version second",)], ids=["id first", "id last", "version second"]
)
async def test_a_result_over_the_limit_is_said_to_be_too_large(
    start: Start, habits: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stdio, "MAX_MESSAGE_BYTES", 100_000)
    source = start(*habits)
    for size in (100_000, 1_000_000):
        with pytest.raises(ToolError, match=r"^echo was carried out, but its result is too large"):
            await _call(source, size)
        assert await _call(source, 90_000) == "x" * 90_000
    assert len(_processes(capfd)) == 1


async def test_a_process_that_ignores_the_end_of_its_input_leaves_nothing_behind(
    start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    source = start("stubborn", "child")
    assert await _call(source) == "carried out"
    processes = _processes(capfd)
    assert len(processes) == 2
    await source.aclose()
    await eventually(lambda: not any(map(_is_running, processes)))


async def test_a_process_that_ends_leaves_no_child_behind(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    source = start("child")
    assert await _call(source) == "carried out"
    processes = _processes(capfd)
    await source.aclose()
    await eventually(lambda: not any(map(_is_running, processes)))


async def test_nothing_is_left_behind_though_the_end_is_cut_off(
    start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    source = start("stubborn")
    assert await _call(source) == "carried out"
    closing = asyncio.create_task(source.aclose())
    (running,) = (task for task in asyncio.all_tasks() if task.get_name() == "mcp demo")
    await eventually(lambda: running.cancelling() > 0)
    running.cancel()
    await closing
    (process,) = _processes(capfd)
    await eventually(lambda: not _is_running(process))
