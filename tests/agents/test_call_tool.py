"""Agents of one's own that call the server's tools: ``ctx.call_tool``, its policy and its approvals."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest
from ag_ui.core import (
    Interrupt,
    RunAgentInput,
    RunErrorEvent,
    ToolCallArgsEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from agui_container import RunContext, Settings, ToolError
from agui_container.ports import Item, RunInterrupted
from agui_container.testing import AgentThread, open_thread
from tests.agents.call_tool_agents import CALLS
from tests.contexts import of_type, types
from tests.tools.mcp_fixtures import PROCESS

YES = {"approved": True}
TOOLS = "tests.agents.call_tool_agents:tools"
ASK = Settings(tools=TOOLS, tool_policy='[{"tool_pattern": "pay", "policy": "ask"}]')


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


async def payer(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    """Pay, in three lines."""
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
        yield f"{'demo_add' in ctx.tools}: {await ctx.call_tool('demo_add', {'a': 1, 'b': 2})}"

    async with open_thread(adder, Settings(mcp_servers=f"[{PROCESS.model_dump_json()}]")) as thread:
        await thread.send("add")
        assert thread.text == "True: 3"


async def test_a_call_that_needs_approval_ends_the_run_and_is_run_once_when_it_is_approved() -> None:
    async with open_thread(payer, ASK) as thread:
        await thread.send("pay")
        (interrupt,) = thread.interrupts
        assert (interrupt.reason, interrupt.metadata and interrupt.metadata["toolName"]) == ("tool_call", "pay")
        assert CALLS["pay"] == 0
        await thread.answer(YES)
        assert results(thread) == ["paid 5"]
        assert types(thread.events).count("TOOL_CALL_START") == 0  # the first run has announced the call
        assert thread.text == "paid 5"
        assert CALLS["pay"] == 1


async def test_every_call_is_asked_for_as_the_caller_demands_whatever_the_answers_demand() -> None:
    async def twice(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield f"{await ctx.call_tool('pay', {'amount': 1})}, {await ctx.call_tool('pay', {'amount': 2})}"

    async with open_thread(twice, Settings(tools=TOOLS)) as thread:
        await thread.send("pay", {"approvals": {"ask": "all"}})
        for already in (0, 1):
            assert (len(thread.interrupts), CALLS["pay"]) == (1, already)
            await thread.answer(YES)
        assert thread.text == "paid 1, paid 2"


async def test_the_next_message_asks_again() -> None:
    async with open_thread(payer, ASK) as thread:
        await thread.send("pay")
        await thread.answer(YES)
        await thread.send("once more")
        assert len(thread.interrupts) == 1
        assert CALLS["pay"] == 1


async def test_a_new_message_instead_of_an_answer_gets_the_same_question() -> None:
    async with open_thread(payer, ASK) as thread:
        await thread.send("pay")
        asked = thread.interrupts
        await thread.send("what are you waiting for?")
        assert thread.interrupts == asked


async def test_a_denied_call_raises_an_error_that_the_agent_may_handle() -> None:
    async def careful(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        try:
            yield str(await ctx.call_tool("pay", {"amount": 5}))
        except ToolError as error:
            yield f"Sorry: {error}"

    async with open_thread(careful, ASK) as thread:
        await thread.send("pay")
        await thread.answer({"approved": False, "reason": "too expensive"})
        assert thread.text == "Sorry: the user denied this call: too expensive"
        assert CALLS["pay"] == 0


async def test_a_tool_error_that_the_agent_does_not_handle_is_the_error_of_the_run() -> None:
    async def shopper(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield str(await ctx.call_tool("refuse"))

    async with open_thread(shopper, Settings(tools=TOOLS)) as thread:
        await thread.send("buy")
        (error,) = of_type(thread.events, RunErrorEvent)
        assert (error.code, error.message) == ("AGENT_ERROR", "the shop is closed.")


async def test_edited_arguments_replace_those_of_the_agent() -> None:
    async with open_thread(payer, ASK) as thread:
        await thread.send("pay")
        await thread.answer(YES | {"editedArgs": {"amount": 3}})
        assert thread.text == "paid 3"


async def test_no_call_of_the_turn_is_run_twice_when_the_agent_is_called_again() -> None:
    async def buyer(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        price = await ctx.call_tool("look_up", {"name": "tea"})
        first = await ctx.call_tool("pay", {"amount": 5})
        second = await ctx.call_tool("pay", {"amount": 6})
        yield f"{price}, {first}, {second}"

    async with open_thread(buyer, ASK) as thread:
        await thread.send("buy")
        await thread.answer(YES)
        assert len(thread.interrupts) == 1
        await thread.answer(YES)
        assert thread.text == "tea costs 5, paid 5, paid 6"
        assert CALLS == {"look_up": 1, "pay": 2}


async def test_two_equal_calls_are_two_calls() -> None:
    async def twice(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield str(await asyncio.gather(ctx.call_tool("pay", {"amount": 5}), ctx.call_tool("pay", {"amount": 5})))

    async with open_thread(twice, ASK) as thread:
        await thread.send("pay")
        assert len(thread.interrupts) == 2
        await thread.answer(YES)
        assert thread.text == "['paid 5', 'paid 5']"
        assert CALLS["pay"] == 2


async def test_a_task_group_asks_for_all_its_calls_at_once() -> None:
    async def group(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        async def pay(amount: int) -> str:
            return str(await ctx.call_tool("pay", {"amount": amount}))

        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(pay(amount)) for amount in (1, 2)]
        yield ", ".join(task.result() for task in work)

    async with open_thread(group, ASK) as thread:
        await thread.send("pay")
        assert len(thread.interrupts) == 2
        await thread.answer(YES)
        assert thread.text == "paid 1, paid 2"


async def test_a_call_beside_a_question_ends_first_and_is_not_run_again() -> None:
    async def both(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        calls = [ctx.call_tool("pay", {"amount": 5}), ctx.call_tool("look_up", {"name": "tea"})]
        yield str(await asyncio.gather(*calls))

    async with open_thread(both, ASK) as thread:
        await thread.send("buy")
        assert results(thread) == ["tea costs 5"]
        await thread.answer(YES)
        assert thread.text == "['paid 5', 'tea costs 5']"
        assert CALLS == {"look_up": 1, "pay": 1}


async def test_a_plain_generator_takes_the_result_in_its_thread() -> None:
    def plain(input: RunAgentInput, ctx: RunContext) -> Iterator[Item]:
        yield "Paying. "
        yield str(ctx.call_tool("pay", {"amount": 5}).result())

    async with open_thread(plain, ASK) as thread:
        await thread.send("pay")
        assert (thread.text, len(thread.interrupts)) == ("Paying. ", 1)
        await thread.answer(YES)
        assert thread.text == "Paying. paid 5"
        assert CALLS["pay"] == 1


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


async def test_a_denied_tool_is_never_run() -> None:
    settings = Settings(tools=TOOLS, tool_policy='[{"tool_pattern": "*", "policy": "deny", "reason": "closed"}]')
    async with open_thread(payer, settings) as thread:
        await thread.send("pay")
        (error,) = of_type(thread.events, RunErrorEvent)
        assert error.message == "this tool is not allowed: closed"
        assert CALLS["pay"] == 0


async def test_a_caller_can_demand_approvals_without_any_rule() -> None:
    async def clock(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield str(await ctx.call_tool("calculate", {"expression": "6*7"}))

    async with open_thread(clock) as thread:
        await thread.send("go", {"approvals": {"ask": "all"}})
        assert len(thread.interrupts) == 1
        await thread.answer(YES)
        assert thread.text == "42"


async def test_an_agent_gets_the_answers_to_its_own_questions_and_not_those_to_approvals() -> None:
    async def asker(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        if input.resume:
            ctx.state.replace({"colours": [entry.payload for entry in input.resume]})
        if not ctx.state.value:
            raise RunInterrupted([Interrupt(id=ctx.new_id(), reason="choice", message="Which colour?")])
        yield f"{ctx.state.value}, {await ctx.call_tool('pay', {'amount': 5})}"

    async with open_thread(asker, ASK) as thread:
        await thread.send("paint")
        assert [each.message for each in thread.interrupts] == ["Which colour?"]
        await thread.answer("blue")
        assert [each.reason for each in thread.interrupts] == ["tool_call"]
        await thread.answer(YES)
        assert thread.text == "{'colours': ['blue']}, paid 5"
