"""MCP servers that refuse, forget, restart or cannot be reached."""

import asyncio
import json
import sys
from collections.abc import Callable

import pytest
from ag_ui.core import CustomEvent, ToolCallResultEvent
from starlette.responses import Response

from agui_container.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, TextDelta, ToolContent, ToolError
from agui_container.tools.builtin import builtin_tools
from agui_container.tools.mcp.servers import HttpServer, Server, StdioServer
from agui_container.tools.mcp.source import McpSource
from tests.agents.doubles import ScriptedModel
from tests.contexts import collect_items, of_type, run_context, run_input
from tests.engine.doubles import eventually
from tests.tools.mcp_fixtures import WAIT, Rig, Time
from tests.tools.mcp_scripted import Scripted, refused, scripted

pytestmark = pytest.mark.wire

UNCERTAIN = "The MCP server 'demo' gave no answer that can be read; a call may or may not have been carried out."
UNREACHABLE = "The MCP server 'demo' cannot be reached."
UNAUTHORISED = "Authorisation needed: the MCP server 'demo' refused the credential."


@pytest.mark.parametrize("method", ["initialize", "tools/list", "tools/call"])
@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_credential_is_named_to_the_caller_and_in_the_log(
    method: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted(Scripted(refusals={method: refused(status)})) as rig:
        with pytest.raises(ToolError) as caught:
            await rig.call()
    assert str(caught.value) == UNAUTHORISED
    challenge = "'Bearer realm=\"demo\"'" if status == 401 else "''"
    assert f"MCP server refused the credential server=demo status={status} www_authenticate={challenge}" in caplog.text


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
async def test_the_model_and_the_client_of_a_run_without_tools_read_that_the_credential_was_refused(
    method: str,
) -> None:
    model = ScriptedModel([[TextDelta("Done.")]])
    emitted: list[Item] = []
    async with scripted(Scripted(refusals={method: refused(403)})) as rig:
        assistant = Assistant(model, sources=(rig.source,))
        await collect_items(assistant.run(run_input("go"), run_context(emit=emitted.append)))
    assert json.dumps({"server": "demo", "unavailable": UNAUTHORISED}) in model.prompts[0].system
    assert [event.value for event in of_type(emitted, CustomEvent)] == [{"source": "demo", "message": UNAUTHORISED}]


@pytest.mark.parametrize(
    ("forgotten", "after"),
    [
        (refused(404), ["initialize", "tools/call"]),
        (refused(400, -32000, "Bad Request: No valid session ID provided"), ["initialize", "tools/call"]),
    ],
    ids=["specification", "TypeScript SDK"],
)
async def test_a_call_in_a_session_that_the_server_forgot_is_made_in_a_new_one(
    forgotten: Callable[[object], Response], after: list[str]
) -> None:
    async with scripted(Scripted(forgotten=forgotten)) as rig:
        (tool,) = await rig.source.tools(run_context())
        rig.server.sessions.clear()
        rig.server.methods.clear()
        assert await tool.call({}, run_context()) == "carried out"
        assert rig.server.methods == after


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refused(200, -32602, "a is missing"), "a is missing"),
        (refused(200, -32603, " "), "the tool gave no reason."),
        (refused(429), "The MCP server 'demo' answered with status 429."),
        *[
            (lambda id_, body=body, kind=kind: Response(body.replace("ID", str(id_)), media_type=kind), UNCERTAIN)
            for body, kind in [
                ('{"jsonrpc":"2.0","id":ID,"res', "application/json"),
                ('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"chart"}]}}', "application/json"),
                ("event: message\n\n", "text/event-stream"),
                (f"data: {'x' * 10_000_001}\n\n", "text/event-stream"),
            ]
        ],
    ],
)
async def test_a_failed_call_says_whether_it_was_carried_out(answer: Callable[[object], Response], words: str) -> None:
    async with scripted(Scripted(refusals={"tools/call": answer})) as rig:
        with pytest.raises(ToolError) as caught:
            await rig.call()
    assert str(caught.value) == words


async def test_a_server_that_was_restarted_is_found_again(rig: Rig) -> None:
    tool = (await rig.tools())["demo_add"]
    if not rig.legacy:
        await rig.subscribed()
    await rig.restart()
    if not rig.legacy:  # its stream of changes ends with the server, and a call that meets that end is not repeated
        await eventually(lambda: not rig.source.tools_for().connection.reports_changes)
    assert await tool.call({"a": 1, "b": 2}, run_context()) == "3"
    assert await rig.call("add", {"a": 2, "b": 2}) == "4"
    assert rig.demo.calls == ["add", "add"]


async def test_a_call_that_was_cut_off_is_not_repeated(rig: Rig) -> None:
    calling = asyncio.create_task(rig.call("wait"))
    await asyncio.wait_for(rig.demo.began.wait(), WAIT)
    await rig.restart()
    with pytest.raises(ToolError, match=UNCERTAIN):
        await asyncio.wait_for(calling, WAIT)
    assert rig.demo.calls == []


async def test_a_server_that_is_away_is_tried_again_in_the_next_run(rig: Rig) -> None:
    await rig.running.aclose()
    with pytest.raises(ToolError, match=UNREACHABLE):
        await rig.tools()
    await rig.start()
    assert await rig.call("add", {"a": 1, "b": 2}) == "3"


async def test_runs_that_wait_for_a_silent_server_wait_for_one_attempt_and_the_next_one_is_as_far_away() -> None:
    time, attempts = Time(), 0

    async def be_silent_for_long(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        time.pass_by(30)
        writer.close()

    async with await asyncio.start_server(be_silent_for_long, "127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
        server = HttpServer.model_validate({"name": "demo", "url": url})
        source = McpSource(server, time)
        for seconds, expected in ((0, 1), (29, 1), (1, 2)):
            time.pass_by(seconds)
            runs = [source.tools(run_context()) for _ in range(3)]
            failures = await asyncio.gather(*runs, return_exceptions=True)
            assert [str(failure) for failure in failures] == [UNREACHABLE] * 3
            assert attempts == expected
        await source.aclose()


async def test_a_process_is_started_again_when_it_died(process: McpSource) -> None:
    async def call(name: str) -> ToolContent:
        tools = {tool.spec.name: tool for tool in await process.tools_for().get()}
        return await tools[name].call({}, run_context())

    assert await call("echo") == "carried out"
    with pytest.raises(ToolError, match=UNCERTAIN):
        await call("die")
    assert await call("echo") == "carried out"


EXITS = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "server/discover":
        sys.exit("ExpectedInitializeRequest")
    about = {"name": "a", "version": "1"}
    result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("handshake", ["newest", "initialize"])
async def test_a_process_that_exits_at_the_newest_handshake_gets_the_older_one(
    handshake: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    fields = {"name": "demo", "command": sys.executable, "args": ["-c", EXITS], "handshake": handshake}
    source = McpSource(StdioServer.model_validate(fields))
    assert [tool.spec.name for tool in await source.tools(run_context())] == ["demo_echo"]
    await source.aclose()
    is_logged = "MCP server wrote server=demo line=ExpectedInitializeRequest" in caplog.text
    assert is_logged is (handshake == "newest")


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
    emitted: list[Item] = []
    try:
        items = await collect_items(assistant.run(run_input("calculate 6*7"), run_context(emit=emitted.append)))
    finally:
        await source.aclose()
    assert [event.value for event in of_type(emitted, CustomEvent)] == [{"source": "demo", "message": UNREACHABLE}]
    assert [event.content for event in of_type(items, ToolCallResultEvent)] == ["42"]
    assert f'tools unavailable source=demo error="{UNREACHABLE}"' in caplog.text
