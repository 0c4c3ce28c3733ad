"""MCP servers of others, as their users start them: server-everything, one of fastmcp, and mcp-server-time."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import CustomEvent, DocumentPart, ImagePart, ResumeEntry
from msgspec.structs import replace

from agui_container.ports import Item, Suspension, ToolError, ToolSuspension
from agui_container.ports.notices import TOOLS_PROGRESS
from agui_container.ports.tool import DECLINE, USER_ONLY, for_models
from agui_container.tools.mcp.servers import HttpServer, StdioServer
from agui_container.tools.mcp.source import McpSource
from agui_container.tools.mcp.tool import McpTool
from tests.contexts import of_type, run_context
from tests.engine.doubles import eventually
from tests.machine import find_program
from tests.official.judge import JS
from tests.ports import free_port

FASTMCP = Path(__file__).parent / "mcp_servers" / "fastmcp_shop.py"
EVERYTHING = JS / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
TRANSPORTS = ["stdio", "http"]


@asynccontextmanager
async def opened(command: list[str], transport: str, **settings: object) -> AsyncIterator[McpSource]:
    """The tools of a server. Over HTTP its last argument or the variable ``PORT`` is the port."""
    fields: dict[str, object] = {"name": "demo", "tool_prefix": "", **settings}
    if transport == "stdio":
        server: HttpServer | StdioServer = StdioServer.model_validate(
            {**fields, "command": command[0], "args": command[1:]}
        )
        process = None
    else:
        port = free_port()
        arguments = [argument.replace("PORT", str(port)) for argument in command]
        process = await asyncio.create_subprocess_exec(*arguments, env={**os.environ, "PORT": str(port)})
        await eventually(lambda: is_open(port))
        server = HttpServer.model_validate({**fields, "url": f"http://127.0.0.1:{port}/mcp"})
    source = McpSource(server)
    try:
        yield source
    finally:
        await source.aclose()
        if process is not None:
            process.terminate()
            await process.wait()


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Caller:
    def __init__(self, source: McpSource) -> None:
        self.source = source
        self.sent: list[Item] = []
        self.background: list[Awaitable[object]] = []
        self.ctx = replace(run_context(emit=self.sent.append, background=self.background.append), tool_call_id="call-1")

    async def tool(self, name: str) -> McpTool:
        (tool,) = [each for each in await self.source.tools_for().get() if each.spec.name == name]
        assert isinstance(tool, McpTool)
        return tool

    async def call(self, name: str, **arguments: object) -> Any:  # noqa: ANN401
        return await (await self.tool(name)).call(arguments, self.ctx)

    async def end(self) -> None:
        for work in self.background:
            await work

    async def ask(self, name: str, **arguments: object) -> Suspension:
        with pytest.raises(ToolSuspension) as asked:
            await self.call(name, **arguments)
        return asked.value.suspension

    async def answer(self, name: str, suspension: Suspension, payload: object) -> Any:  # noqa: ANN401
        entries = [
            ResumeEntry(interrupt_id=each.id, status="resolved", payload=payload) for each in suspension.interrupts
        ]
        return await (await self.tool(name)).resume(suspension, entries, self.ctx)


@pytest.mark.other_language
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_server_everything(transport: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    command = [find_program("node"), str(EVERYTHING), "stdio" if transport == "stdio" else "streamableHttp"]
    async with opened(command, transport) as source:
        caller = Caller(source)
        assert await caller.call("echo", message="hi") == "Echo: hi"
        assert any(isinstance(part, ImagePart) for part in await caller.call("get-tiny-image"))
        shown = await caller.call("get-annotated-message", messageType="success", includeImage=True)
        assert for_models(shown) == USER_ONLY
        document = await caller.call("get-resource-reference", resourceType="Blob", resourceId=1)
        named = [part.metadata for part in document if isinstance(part, DocumentPart)]
        assert named == [{"filename": "1"}]
        await caller.call("trigger-long-running-operation", duration=1, steps=3)
        progress = [event.value for event in of_type(caller.sent, CustomEvent) if event.name == TOOLS_PROGRESS]
        assert progress[0] == {"toolCallId": "call-1", "progress": 1.0, "total": 3.0}
        await answer_the_form(caller)
        link = await caller.ask("trigger-url-elicitation", url="https://example.com/", message="Sign in.")
        assert link.interrupts[0].metadata == {"url": "https://example.com/"}
        assert "completed" in await caller.answer("trigger-url-elicitation", link, None)
        await caller.end()
    assert "only run as tasks server=demo tools=simulate-research-query" in caplog.text
    if transport == "stdio":
        assert "MCP server wrote server=demo" in caplog.text


async def answer_the_form(caller: Caller) -> None:
    """Answer a form with fields of every kind: wrongly, rightly, with a refusal, and not at all."""
    name = "trigger-elicitation-request"
    with pytest.raises(ToolSuspension) as again:
        await caller.answer(name, await caller.ask(name), {"name": "Ada", "integer": 0})
    (question,) = again.value.suspension.interrupts
    assert str(question.message).startswith("The answer is not valid: integer: 0 is less than the minimum of 1.")
    values = {"name": "Ada", "check": True, "legacyTitledEnum": "pet-2", "titledMultipleSelectEnum": ["fish-2"]}
    accepted = await caller.answer(name, again.value.suspension, values)
    assert "Name: Ada\n- Agreed to terms: true" in accepted
    assert "User declined" in await caller.answer(name, await caller.ask(name), DECLINE)
    assert "User cancelled" in str(await cancelled(caller, name, await caller.ask(name)))


async def cancelled(caller: Caller, name: str, suspension: Suspension) -> object:
    entries = [ResumeEntry(interrupt_id=each.id, status="cancelled") for each in suspension.interrupts]
    return await (await caller.tool(name)).resume(suspension, entries, caller.ctx)


@pytest.mark.packages
@pytest.mark.parametrize("handshake", ["newest", "initialize"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_server_of_fastmcp(transport: str, handshake: str, caplog: pytest.LogCaptureFixture) -> None:
    command = [sys.executable, str(FASTMCP), *(["PORT"] if transport == "http" else [])]
    async with opened(command, transport, handshake=handshake) as source:
        caller = Caller(source)
        assert (await caller.tool("buy")).instructions == "Buy here."
        assert await caller.call("grow") == "grown"
        assert await caller.call("grown") == "new"
        if handshake == "initialize":
            assert await caller.answer("buy", await caller.ask("buy"), {"size": 3}) == "3"
            await caller.end()
        else:
            with pytest.raises(ToolError):
                await caller.call("buy")
            assert "needs the setting server=demo tool=buy handshake=initialize" in caplog.text


@pytest.mark.packages
async def test_mcp_server_time() -> None:
    async with opened([sys.executable, "-m", "mcp_server_time"], "stdio") as source:
        caller = Caller(source)
        assert '"timezone": "UTC"' in await caller.call("get_current_time", timezone="UTC")
        with pytest.raises(ToolError, match="Invalid timezone"):
            await caller.call("get_current_time", timezone="No/Where")
