"""MCP servers that come and go: a run loses no more than their tools, and finds them again."""

import asyncio
import sys

import pytest
from ag_ui.core import CustomEvent, ToolCallResultEvent

from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import ToolError
from agui_container.tools.builtin import builtin_tools
from agui_container.tools.mcp import session
from agui_container.tools.mcp.servers import HttpServer, Server, StdioServer
from agui_container.tools.mcp.source import McpSource
from tests.contexts import collect_items, of_type, run_context, run_input
from tests.engine.doubles import eventually
from tests.tools.mcp_demo import Demo, refuse_method, serve_app
from tests.tools.mcp_fixtures import WAIT, Rig, rigged

UNREACHABLE = "The MCP server 'demo' cannot be reached."
OUTAGE = {"source": "demo", "message": UNREACHABLE}


async def test_a_server_that_was_restarted_is_found_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FIRST_PAUSE", 0.0)
    tool = (await rig.tools())["demo_add"]
    if not rig.legacy:
        await rig.subscribed()
    await rig.restart()
    if not rig.legacy:  # its stream of changes ends with the server, and a call that meets that end is not repeated
        await eventually(lambda: rig.source.listing is None)
    assert await tool.call({"a": 1, "b": 2}, run_context()) == "3"
    assert await rig.call("add", {"a": 2, "b": 2}) == "4"
    assert rig.demo.calls == ["add", "add"]


async def test_a_call_that_was_cut_off_is_not_repeated(rig: Rig) -> None:
    calling = asyncio.create_task(rig.call("wait"))
    await asyncio.wait_for(rig.demo.began.wait(), WAIT)
    await rig.restart()
    with pytest.raises(ToolError, match="went away; the call may or may not have been carried out"):
        await asyncio.wait_for(calling, WAIT)
    assert rig.demo.calls == []


async def test_an_error_with_the_code_of_a_lost_connection_is_the_servers_own(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = (await rig.tools())["demo_refuse"]
    calling = asyncio.create_task(rig.call("wait"))
    await asyncio.wait_for(rig.demo.began.wait(), WAIT)
    with pytest.raises(ToolError, match=r"^The quota is used up\.$"):
        await tool.call({}, run_context())
    assert rig.demo.calls == ["wait", "refuse"]
    rig.source.drop_listing()
    monkeypatch.setattr(rig.demo.server, "list_tools", rig.demo.refuse)
    with pytest.raises(ToolError, match="could not list its tools"):
        await rig.tools()
    rig.demo.go_on.set()
    assert await asyncio.wait_for(calling, WAIT) == "went on"


async def test_a_server_that_is_away_is_tried_again_after_a_pause(rig: Rig) -> None:
    await rig.running.aclose()
    with pytest.raises(ToolError, match=UNREACHABLE):
        await rig.tools()
    await rig.start()
    with pytest.raises(ToolError, match=UNREACHABLE):
        await rig.tools()
    rig.times.pass_by(session.FIRST_PAUSE)
    assert await rig.call("add", {"a": 1, "b": 2}) == "3"


async def test_changes_are_told_again_after_the_stream_of_changes_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FIRST_PAUSE", 0.0)
    async with rigged() as rig:
        await rig.tools()
        await rig.subscribed()
        await rig.restart()
        await eventually(lambda: rig.source.listing is None)
        assert "demo_grown" not in await rig.tools()
        await rig.subscribed()
        await rig.call("grow")
        await eventually(lambda: rig.source.listing is None)
        assert await rig.call("grown") == "new"


@pytest.mark.parametrize(
    ("status", "seconds", "sentence"),
    [
        (500, WAIT, "The MCP server 'demo' could not list its tools."),
        (None, 3.0, "The MCP server 'demo' did not answer in time."),
    ],
)
async def test_a_server_that_does_not_list_its_tools_is_said(status: int | None, seconds: float, sentence: str) -> None:
    async with serve_app(refuse_method(Demo().server.streamable_http_app(), "tools/list", status)) as port:
        server = HttpServer.model_validate(
            {"name": "demo", "url": f"http://127.0.0.1:{port}/mcp", "connect_timeout": seconds}
        )
        source = McpSource(server)
        with pytest.raises(ToolError) as caught:
            await source.tools(run_context())
        await source.aclose()
    assert str(caught.value) == sentence


async def test_a_run_that_is_cancelled_leaves_the_connection_to_others(process: Rig) -> None:
    one, other = (asyncio.create_task(process.tools()) for _ in range(2))
    await eventually(lambda: any(task.get_name() == "mcp demo" for task in asyncio.all_tasks()))
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    assert "demo_add" in await asyncio.wait_for(other, WAIT)


async def test_a_process_is_spoken_to_and_started_again_when_it_died(process: Rig) -> None:
    assert await process.call("add", {"a": 1, "b": 2}) == "3"
    with pytest.raises(ToolError, match="went away"):
        await process.call("die")
    assert await process.call("add", {"a": 2, "b": 2}) == "4"


@pytest.mark.parametrize(
    "server",
    [
        StdioServer(name="demo", command="no-such-command"),
        StdioServer(name="demo", command=sys.executable, args=("-c", "print('not MCP')")),
        StdioServer(name="demo", command=sys.executable, args=("-c", "input(); input()"), connect_timeout=0.2),
        HttpServer.model_validate({"name": "demo", "url": "http://127.0.0.1:9/mcp"}),
    ],
    ids=["no command", "no server", "silent", "refused"],
)
async def test_a_dead_server_costs_a_run_only_its_own_tools(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    source = McpSource(server)
    assistant = Assistant(OfflineModel(), builtin_tools(), sources=(source,))
    try:
        items = await collect_items(assistant.run(run_input("calculate 6*7"), run_context()))
    finally:
        await source.aclose()
    assert [event.value for event in of_type(items, CustomEvent)] == [OUTAGE]
    assert [event.content for event in of_type(items, ToolCallResultEvent)] == ["42"]
    assert f'tools unavailable source=demo error="{UNREACHABLE}"' in caplog.text
