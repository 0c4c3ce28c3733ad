"""Agents of one's own that call the server's tools: ``ctx.call_tool``, its policy and its approvals."""

import json
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, RunErrorEvent, ToolCallArgsEvent, ToolCallResultEvent, ToolCallStartEvent

from agui_container import RunContext, Settings
from agui_container.ports import Item
from agui_container.testing import AgentThread, open_thread
from tests.agents.call_tool_agents import CALLS
from tests.contexts import of_type
from tests.tools.mcp_fixtures import SCRIPT

TOOLS = "tests.agents.call_tool_agents:tools"


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


async def payer(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    yield str(await ctx.call_tool("pay", {"amount": 5}))


def results(thread: AgentThread) -> list[object]:
    return [event.content for event in of_type(thread.events, ToolCallResultEvent)]


async def test_a_call_and_its_result_are_sent_to_the_client() -> None:
    async with open_thread(payer, Settings(tools=TOOLS)) as thread:
        await thread.send("pay")
        (start,) = of_type(thread.events, ToolCallStartEvent)
        (args,) = of_type(thread.events, ToolCallArgsEvent)
        assert (start.tool_call_name, json.loads(args.delta)) == ("pay", {"amount": 5})
        assert results(thread) == ["paid 5"]
        assert thread.text == "paid 5"


async def test_tools_of_mcp_servers_are_among_the_tools() -> None:
    async def adder(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield f"{'echo' in ctx.tools}: {await ctx.call_tool('echo')}"

    async with open_thread(adder, Settings(mcp_servers=f"[{SCRIPT.model_dump_json()}]")) as thread:
        await thread.send("add")
        assert thread.text == "True: carried out"


async def test_a_tool_error_that_the_agent_does_not_handle_is_the_error_of_the_run() -> None:
    async def shopper(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield str(await ctx.call_tool("refuse"))

    async with open_thread(shopper, Settings(tools=TOOLS)) as thread:
        await thread.send("buy")
        (error,) = of_type(thread.events, RunErrorEvent)
        assert (error.code, error.message) == ("AGENT_ERROR", "the shop is closed.")


async def test_so_is_one_of_a_server_without_settings_of_tools() -> None:
    async def divider(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield str(await ctx.call_tool("calculate", {"expression": "1/0"}))

    async with open_thread(divider) as thread:
        await thread.send("divide")
        (error,) = of_type(thread.events, RunErrorEvent)
        assert (error.code, error.message) == ("AGENT_ERROR", "Division by zero.")


async def test_an_async_agent_is_told_to_await() -> None:
    said = []

    async def blocking(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        try:
            ctx.call_tool("pay", {"amount": 5}).result()
        except RuntimeError as error:
            said.append(str(error))
        yield "ok"

    async with open_thread(blocking) as thread:
        await thread.send("pay")
    assert said == ["Await ctx.call_tool(...) here: result() is for code in a thread."]
