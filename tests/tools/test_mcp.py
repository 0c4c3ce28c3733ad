"""MCP servers as sources of tools: a real server, over HTTP and as a process, of today and of before."""

import asyncio
import json
import math

import pytest
from ag_ui.core import CustomEvent
from msgspec.structs import replace

from agui_container.assistant.assistant import Assistant
from agui_container.ports import Item, TextDelta, ToolError
from agui_container.ports.notices import TOOLS_PROGRESS
from agui_container.tools.mcp import open_call
from agui_container.tools.mcp.source import MAX_AGE, MAX_INSTRUCTIONS
from agui_container.tools.mcp.tool import McpTool
from tests.agents.doubles import ScriptedModel
from tests.contexts import collect_items, of_type, run_context, run_input
from tests.engine.doubles import eventually
from tests.tools.mcp_fixtures import WAIT, Rig, rigged
from tests.tools.mcp_scripted import ECHO, Json, Scripted, scripted

pytestmark = pytest.mark.wire


async def test_the_servers_tools_are_listed_under_a_prefix(rig: Rig) -> None:
    spec = (await rig.tools())["demo_add"].spec
    assert spec.description == "Add two numbers."
    assert isinstance(spec.parameters, dict)
    assert spec.parameters["required"] == ["a", "b"]


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
        if rig.demo.began.is_set():  # on a slow machine the call is given up before the server has it
            await asyncio.wait_for(rig.demo.stopped.wait(), WAIT)


async def test_progress_reaches_the_client_and_not_too_often(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Item] = []
    monkeypatch.setattr(open_call, "PROGRESS_SECONDS", math.inf)
    tool = (await rig.tools())["demo_progress"]
    assert await tool.call({}, replace(run_context(emit=sent.append), tool_call_id="call-1")) == "arrived"
    value = {"toolCallId": "call-1", "progress": 0.0, "total": 3.0, "message": "step 0"}
    assert [item.value for item in of_type(sent, CustomEvent) if item.name == TOOLS_PROGRESS] == [value]


async def test_the_list_is_kept_until_it_is_old(rig: Rig) -> None:
    await rig.tools()
    if not rig.legacy:
        await eventually(lambda: rig.source.tools_for().connection.reports_changes)
    (first, *_) = await rig.source.tools(run_context())
    rig.time.pass_by(MAX_AGE - 1)
    assert (await rig.source.tools(run_context()))[0] is first
    rig.time.pass_by(2)
    assert (await rig.source.tools(run_context()))[0] is not first


async def test_a_tool_that_a_call_added_is_there_in_the_next_run(rig: Rig) -> None:
    assert "demo_grown" not in await rig.tools()
    if not rig.legacy:
        await rig.subscribed()
    await rig.call("grow")
    await eventually(lambda: rig.source.tools_for().connection.is_stale)
    assert await rig.call("grown") == "new"


async def test_a_list_is_kept_for_the_time_that_the_server_names() -> None:
    """A server that reports no changes names the time, and 0 lists the tools again in each run."""
    names, times = iter("abcd"), [0, 60_000, 60_000, 0]

    def listing(_: object) -> Json:
        return {"tools": [{**ECHO, "name": next(names)}], "ttlMs": times.pop(0)}

    async with scripted(Scripted(is_newest=True, listing=listing)) as rig:
        assert [await rig.names(), await rig.names()] == [["a"], ["b"]]
        rig.time.pass_by(59)
        assert await rig.names() == ["b"]
        rig.time.pass_by(1)
        assert await rig.names() == ["c"]


async def test_tools_that_only_run_as_tasks_are_left_out_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    def task(support: str) -> dict[str, object]:
        return {**ECHO, "name": support, "execution": {"taskSupport": support}}

    server = Scripted(listing=lambda _: {"tools": [task("optional"), task("required"), ECHO]})
    async with scripted(server) as rig:
        assert await rig.names() == ["optional", "echo"]
        rig.source.tools_for().connection.is_stale = True
        await rig.names()
    assert caplog.text.count("only run as tasks server=demo tools=required") == 1


PATTERN = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
GIVEN = {"a": "a" * 60 + "!"}


async def test_the_output_schema_of_a_server_is_not_checked() -> None:
    """A server's schema is not trusted, because a slow regular expression in it would block all runs."""
    listing: Json = {"tools": [{**ECHO, "outputSchema": PATTERN}]}
    async with scripted(Scripted(listing=lambda _: listing, result={"content": [], "structuredContent": GIVEN})) as rig:
        assert await rig.call() == json.dumps(GIVEN, separators=(",", ":"))


async def test_long_instructions_are_cut() -> None:
    async with scripted(Scripted(instructions="x" * 3 * MAX_INSTRUCTIONS)) as rig:
        (tool,) = await rig.source.tools(run_context())
    assert isinstance(tool, McpTool)
    assert tool.instructions == "x" * MAX_INSTRUCTIONS


@pytest.mark.parametrize("instructions", [True, False])
async def test_instructions_of_a_server_are_part_of_the_system_text_unless_turned_off(*, instructions: bool) -> None:
    model = ScriptedModel([[TextDelta("Done.")]])
    async with rigged(instructions=instructions) as rig:
        await collect_items(Assistant(model, sources=(rig.source,)).run(run_input("go"), run_context()))
    assert ('{"server": "demo", "instructions": "Add first."}' in model.prompts[0].system) is instructions
