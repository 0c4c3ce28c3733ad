"""MCP servers as sources of tools: a real server, over HTTP and as a process, of today and of before."""

import asyncio
import json
import sys
from collections.abc import Mapping

import pytest
from ag_ui.core import AudioPart, DataSource, DocumentPart, ImagePart, TextPart, ToolCallResultEvent

from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import ToolContent, ToolError
from agui_container.tools.builtin import builtin_tools
from agui_container.tools.mcp.servers import StdioServer
from agui_container.tools.mcp.source import MAX_AGE, McpSource
from tests.contexts import collect_items, of_type, run_context, run_input
from tests.engine.doubles import eventually
from tests.tools.mcp_fixtures import WAIT, Rig, rigged
from tests.tools.mcp_stateless import GIVEN

# --- tools and results ------------------------------------------------------------------------------------------------


async def test_the_servers_tools_are_listed_under_a_prefix(rig: Rig) -> None:
    spec = (await rig.tools())["demo_add"].spec
    assert spec.description == "Add two numbers."
    assert isinstance(spec.parameters, dict)
    assert spec.parameters["required"] == ["a", "b"]


async def test_a_prefix_can_be_chosen() -> None:
    async with rigged(tool_prefix="") as rig:
        assert "add" in await rig.tools()


IMAGE = DataSource(value="cGl4ZWxz", mime_type="image/png")


@pytest.mark.parametrize(
    ("name", "arguments", "content"),
    [
        ("add", {"a": 1, "b": 2}, "3"),
        ("nothing", {}, '{"a":1}'),
        ("picture", {}, [ImagePart(source=IMAGE)]),
        ("file", {}, [DocumentPart(source=DataSource(value="JVBERg==", mime_type="application/pdf"))]),
        (
            "mixed",
            {},
            [
                TextPart(text="Listen:"),
                AudioPart(source=DataSource(value="c291bmQ=", mime_type="audio/wav")),
                TextPart(text="[report](https://example.com/r): All of it"),
            ],
        ),
    ],
)
async def test_results_become_text_or_parts(
    rig: Rig, name: str, arguments: Mapping[str, object], content: ToolContent
) -> None:
    assert await rig.call(name, arguments) == content


async def test_a_failure_is_said_in_the_servers_words(rig: Rig) -> None:
    with pytest.raises(ToolError, match=r"^No such city\.$"):
        await rig.call("fail")


async def test_wrong_arguments_are_said_in_the_servers_words(rig: Rig) -> None:
    with pytest.raises(ToolError, match="valid integer"):
        await rig.call("add", {"a": "x", "b": 2})


async def test_a_call_of_a_tool_that_is_gone_is_an_error(rig: Rig) -> None:
    tool = (await rig.tools())["demo_add"]
    rig.demo.server.remove_tool("add")
    with pytest.raises(ToolError, match="Unknown tool: add"):
        await tool.call({}, run_context())


# --- time -------------------------------------------------------------------------------------------------------------


async def test_a_cancelled_call_is_cancelled_at_the_server(rig: Rig) -> None:
    calling = asyncio.create_task(rig.call("wait"))
    await asyncio.wait_for(rig.demo.began.wait(), WAIT)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await asyncio.wait_for(rig.demo.stopped.wait(), WAIT)
    assert await rig.call("add", {"a": 1, "b": 2}) == "3"


async def test_a_silent_call_is_given_up_and_cancelled() -> None:
    async with rigged(timeout=0.3) as rig:
        await rig.tools()
        with pytest.raises(ToolError, match=r"^demo_wait did not respond for 0\.3 seconds\.$"):
            await rig.call("wait")
        await asyncio.wait_for(rig.demo.stopped.wait(), WAIT)


async def test_progress_is_a_sign_of_life() -> None:
    async with rigged(timeout=2.5) as rig:
        assert await rig.call("progress") == "arrived"


async def test_calls_run_side_by_side(rig: Rig) -> None:
    waiting = asyncio.create_task(rig.call("wait"))
    await asyncio.wait_for(rig.demo.began.wait(), WAIT)
    assert await rig.call("add", {"a": 1, "b": 2}) == "3"
    rig.demo.go_on.set()
    assert await asyncio.wait_for(waiting, WAIT) == "went on"


# --- the list ---------------------------------------------------------------------------------------------------------


async def test_nothing_is_connected_before_it_is_asked_for() -> None:
    source = McpSource(StdioServer(name="demo", command="no-such-command"))
    await source.aclose()


async def test_the_list_is_kept_until_it_is_old(rig: Rig) -> None:
    first = await rig.source.tools(run_context())
    rig.times.pass_by(MAX_AGE - 1)
    assert await rig.source.tools(run_context()) is first
    rig.times.pass_by(2)
    assert await rig.source.tools(run_context()) is not first


@pytest.mark.parametrize("seconds", [60.0, -60.0])
async def test_nothing_is_kept_across_a_restored_snapshot(rig: Rig, seconds: float) -> None:
    first = await rig.source.tools(run_context())
    rig.times.wall += seconds
    second = await rig.source.tools(run_context())
    assert second is not first
    assert await second[0].call({"a": 1, "b": 2}, run_context()) == "3"


async def test_a_changed_list_is_asked_for_again(rig: Rig) -> None:
    assert "demo_grown" not in await rig.tools()
    await rig.call("grow")
    await eventually(lambda: rig.source.listing is None)
    assert await rig.call("grown") == "new"


async def test_runs_that_ask_at_once_share_one_list(rig: Rig) -> None:
    one, other = await asyncio.gather(*(rig.source.tools(run_context()) for _ in range(2)))
    assert one is other


async def test_a_long_list_is_cut(rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("agui_container.tools.mcp.source.MAX_TOOLS", 2)
    assert list(await rig.tools()) == ["demo_add", "demo_fail"]
    assert "MCP tool list truncated server=demo tools=2" in caplog.text


async def test_the_assistant_calls_a_servers_tools(rig: Rig) -> None:
    assistant = Assistant(OfflineModel(), builtin_tools(), sources=(rig.source,))
    items = await collect_items(
        assistant.run(run_input('call demo_add {"a": 1, "b": 2}\ncall demo_picture'), run_context())
    )
    contents = [event.content for event in of_type(items, ToolCallResultEvent)]
    assert contents == ["3", [ImagePart(source=IMAGE)]]


async def test_a_closed_source_can_be_used_again(rig: Rig) -> None:
    await rig.tools()
    await rig.source.aclose()
    assert await rig.call("add", {"a": 1, "b": 2}) == "3"


async def test_the_output_schema_of_a_server_is_not_checked() -> None:
    """A server's schema is not trusted, because a slow regular expression in it would block all runs."""
    source = McpSource(StdioServer(name="unkept", command=sys.executable, args=("-m", "tests.tools.mcp_stateless")))
    try:
        (tool,) = await source.tools(run_context())
        assert await tool.call({}, run_context()) == json.dumps(GIVEN, separators=(",", ":"))
    finally:
        await source.aclose()
