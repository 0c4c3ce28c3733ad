"""Tools of a client in one turn: those that it registers meanwhile, and those that a rule denies."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, ToolCallArgsEvent, ToolCallEndEvent, ToolCallStartEvent, UserMessage

from agui_container.ports import Item
from agui_container.protocols.gen import agent_pb2 as roz
from tests.protocols.clients import serving_clients
from tests.protocols.grpc.client import schema

pytestmark = pytest.mark.wire


async def calls_first(run_input: RunAgentInput) -> AsyncIterator[Item]:
    """Call the first tool, and say afterwards which tools and texts the next run has."""
    if isinstance(run_input.messages[-1], UserMessage):
        yield ToolCallStartEvent(tool_call_id="c1", tool_call_name="open")
        yield ToolCallArgsEvent(tool_call_id="c1", delta="{}")
        yield ToolCallEndEvent(tool_call_id="c1")
    else:
        yield " ".join(
            [*(tool.name for tool in run_input.tools or ()), *(text.value for text in run_input.context or ())]
        )


async def names_tools(run_input: RunAgentInput) -> AsyncIterator[Item]:
    yield " ".join(tool.name for tool in run_input.tools or ())


async def test_tools_that_a_client_registers_during_a_call_are_there_in_the_next_run_of_the_turn() -> None:
    async with serving_clients(calls_first) as clients:
        turn = await clients.start_session(tools=[schema("open")])
        await turn.say("go")
        call = (await turn.until("1.0 tool_call_requested")).call_id
        registration = roz.RegisterTools(source="door", tools=[schema("close")], system_context="The door is open.")
        await turn.send(register_tools=registration)
        await turn.give(call, "open")
        assert await turn.answer() == "open close The door is open."


async def test_a_tool_of_the_client_that_a_rule_denies_is_not_given_to_the_model() -> None:
    rules = '[{"tool_pattern": "door_*", "policy": "deny"}]'
    async with serving_clients(names_tools, tool_policy=rules) as clients:
        turn = await clients.start_session(tools=[schema("look"), schema("door_open")])
        assert await turn.ask("go") == "look"
