"""MCP servers as sources of tools: a real server, over HTTP and as a process, of today and of before."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from ag_ui.core import AudioPart, CustomEvent, DataSource, DocumentPart, ImagePart, TextPart, ToolCallResultEvent

from app.agents.assistant import Assistant
from app.models.offline import OfflineModel
from app.ports import RunContext, Tool, ToolContent, ToolError
from app.tools.builtin import builtin_tools
from app.tools.mcp import connection
from app.tools.mcp.servers import HttpServer, Server, StdioServer
from app.tools.mcp.source import MAX_AGE, Clocks, McpSource
from tests.contexts import collected, of_type, run_context, run_input
from tests.engine.doubles import eventually
from tests.tools.mcp_demo import Demo, of_old, refusing, served

WAIT = 30.0
PROCESS = StdioServer(name="demo", command=sys.executable, args=("-m", "tests.tools.mcp_demo"))
UNREACHABLE = "The MCP server 'demo' cannot be reached."
OUTAGE = {"source": "demo", "message": UNREACHABLE}


@dataclass
class Times:
    """Both clocks of a source."""

    wall: float = 1_000_000.0
    steady: float = 0.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.wall, lambda: self.steady)


@dataclass
class Rig:
    """A source and its server, which can be stopped and started again."""

    source: McpSource
    demo: Demo
    port: int = 0
    legacy: bool = False
    times: Times = field(default_factory=Times)
    running: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        app = self.demo.server.streamable_http_app()
        self.port = await self.running.enter_async_context(served(of_old(app) if self.legacy else app, self.port))

    async def restart(self) -> None:
        """Another process at the same address: it knows nothing of the first one's sessions."""
        await self.running.aclose()
        self.demo = Demo()
        await self.start()

    async def tools(self, ctx: RunContext | None = None) -> dict[str, Tool]:
        return {tool.spec.name: tool for tool in await self.source.tools(ctx or run_context())}

    async def call(self, name: str, arguments: Mapping[str, object] | None = None) -> ToolContent:
        tool = (await self.tools())[f"demo_{name}"]
        return await tool.call(arguments or {}, run_context())


@asynccontextmanager
async def rigged(*, legacy: bool = False, **settings: object) -> AsyncIterator[Rig]:
    times, demo = Times(), Demo()
    app = demo.server.streamable_http_app()
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(served(of_old(app) if legacy else app))
        server = HttpServer.model_validate({"name": "demo", "url": f"http://127.0.0.1:{port}/mcp", **settings})
        rig = Rig(McpSource(server, times.clocks), demo, port, legacy, times, stack.pop_all())
        try:
            yield rig
        finally:
            await rig.source.aclose()
            await rig.running.aclose()


@pytest.fixture(params=["today", "before"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    async with rigged(legacy=request.param == "before") as made:
        yield made


@pytest.fixture
async def process() -> AsyncIterator[Rig]:
    rig = Rig(McpSource(PROCESS), Demo())
    yield rig
    await rig.source.aclose()


# --- tools and what they give -----------------------------------------------------------------------------------------


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
        with pytest.raises(ToolError, match=r"^demo_wait gave no sign of life for 0\.3 seconds\.$"):
            await rig.call("wait")
        await asyncio.wait_for(rig.demo.stopped.wait(), WAIT)


async def test_progress_is_a_sign_of_life() -> None:
    async with rigged(timeout=0.5) as rig:
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
    await eventually(lambda: rig.source._listing is None)
    assert await rig.call("grown") == "new"


async def test_runs_that_ask_at_once_share_one_list(rig: Rig) -> None:
    one, other = await asyncio.gather(*(rig.source.tools(run_context()) for _ in range(2)))
    assert one is other


async def test_a_long_list_is_cut(rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("app.tools.mcp.source.MAX_TOOLS", 2)
    assert list(await rig.tools()) == ["demo_add", "demo_fail"]
    assert "it lists more tools than are used: the first 2 are" in caplog.text


# --- servers that come and go -----------------------------------------------------------------------------------------


async def test_a_server_that_was_restarted_is_found_again(rig: Rig) -> None:
    tool = (await rig.tools())["demo_add"]
    await rig.restart()
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


async def test_a_server_that_is_away_is_tried_again_after_a_pause(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.0)
    await rig.running.aclose()
    for _ in range(2):
        with pytest.raises(ToolError, match=UNREACHABLE):
            await rig.tools()
    assert rig.source._connection._not_before > 0
    rig.source._connection._not_before = 0.0
    await rig.start()
    assert await rig.call("add", {"a": 1, "b": 2}) == "3"


async def test_changes_are_told_again_after_the_stream_of_changes_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.0)
    async with rigged() as rig:
        await rig.tools()
        await rig.restart()
        await eventually(lambda: rig.source._listing is None)
        assert "demo_grown" not in await rig.tools()
        await rig.call("grow")
        await eventually(lambda: rig.source._listing is None)
        assert await rig.call("grown") == "new"


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (500, "The MCP server 'demo' could not list its tools."),
        (None, "The MCP server 'demo' did not answer in time."),
    ],
)
async def test_a_server_that_does_not_list_its_tools_is_said(status: int | None, sentence: str) -> None:
    async with served(refusing(Demo().server.streamable_http_app(), "tools/list", status)) as port:
        server = HttpServer.model_validate(
            {"name": "demo", "url": f"http://127.0.0.1:{port}/mcp", "connect_timeout": 0.5}
        )
        source = McpSource(server)
        with pytest.raises(ToolError) as caught:
            await source.tools(run_context())
        await source.aclose()
    assert str(caught.value) == sentence


async def test_a_run_that_is_cancelled_leaves_the_connection_to_others(process: Rig) -> None:
    one, other = (asyncio.create_task(process.tools()) for _ in range(2))
    await eventually(lambda: process.source._connection._session is not None)
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
        items = await collected(assistant.run(run_input("calculate 6*7"), run_context()))
    finally:
        await source.aclose()
    assert [event.value for event in of_type(items, CustomEvent)] == [OUTAGE]
    assert [event.content for event in of_type(items, ToolCallResultEvent)] == ["42"]
    assert f"source=<demo> | tools are unavailable: {UNREACHABLE}" in caplog.text


async def test_the_assistant_calls_a_servers_tools(rig: Rig) -> None:
    assistant = Assistant(OfflineModel(), builtin_tools(), sources=(rig.source,))
    items = await collected(
        assistant.run(run_input('call demo_add {"a": 1, "b": 2}\ncall demo_picture'), run_context())
    )
    contents = [event.content for event in of_type(items, ToolCallResultEvent)]
    assert contents == ["3", [ImagePart(source=IMAGE)]]


async def test_a_closed_source_can_be_used_again(rig: Rig) -> None:
    await rig.tools()
    await rig.source.aclose()
    assert await rig.call("add", {"a": 1, "b": 2}) == "3"
