"""A cancel ends a run at once, from anywhere, and ends it properly."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    ReasoningMessageStartEvent,
    RunAgentInput,
    StepStartedEvent,
    SubagentStartedEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallStartEvent,
)

from agui_container.ports import Item
from tests.behaviour.client import Refused, begin_run, outcome, types
from tests.conftest import Connect
from tests.engine.doubles import ask, wait_for_event


async def silent(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hi"
    await asyncio.Event().wait()


@pytest.mark.durable
@pytest.mark.wire
@pytest.mark.platform
async def test_a_cancelled_run_closes_everything(connect: Connect) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield StepStartedEvent(step_name="s")
        yield SubagentStartedEvent(subagent_run_id="sub", name="helper")
        yield ToolCallStartEvent(tool_call_id="c", tool_call_name="tool")
        yield ToolCallArgsEvent(tool_call_id="c", delta='{"a')
        yield ReasoningMessageStartEvent(message_id="g", role="reasoning")
        yield TextMessageStartEvent(message_id="m", role="assistant")
        await asyncio.Event().wait()

    client = await connect(agent)
    stream = await client.start(ask())
    await stream.until("TEXT_MESSAGE_START")
    await client.cancel("t1", "r1")
    events = await stream.rest()
    assert types(events) == [
        "TEXT_MESSAGE_END",
        "REASONING_MESSAGE_END",
        "TOOL_CALL_END",
        "SUBAGENT_ERROR",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]
    assert events[-1]["outcome"] == {"type": "cancelled"}
    assert "result" not in events[-1]


async def test_an_agent_that_resists_holds_nobody_up(connect: Connect) -> None:
    resisting, give_in = asyncio.Event(), asyncio.Event()

    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        try:
            if asked.run_id == "r1":
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            resisting.set()
            await give_in.wait()
            yield "I go on"

    client = await connect(agent)
    stream = await begin_run(client)
    await client.cancel("t1", "r1")
    assert types(await stream.rest()) == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    await wait_for_event(resisting)
    assert outcome(await client.run(ask(run="r2"))) == "success"
    give_in.set()


@pytest.mark.wire
async def test_cancelling_again_changes_nothing(connect: Connect) -> None:
    client = await connect(silent)
    stream = await begin_run(client)
    first = await client.cancel("t1", "r1")
    assert first["status"] == "cancelled"
    events = await stream.rest()
    again = await client.cancel("t1", "r1")
    assert (again["status"], again["events"], again["endedAt"]) == ("cancelled", first["events"], first["endedAt"])
    assert types(await (await client.attach("t1", "r1", first["events"] - 1)).rest()) == types(events[-1:])


@pytest.mark.wire
async def test_without_a_run_the_threads_active_one_is_cancelled(connect: Connect) -> None:
    client = await connect(silent, on_busy="enqueue")
    await begin_run(client, "r1")
    second = await client.start(ask(run="r2"))
    assert (await client.cancel("t1"))["runId"] == "r1"
    await second.until("TEXT_MESSAGE_CONTENT")
    assert (await client.cancel("t1"))["runId"] == "r2"
    assert outcome(await second.rest()) == "cancelled"


@pytest.mark.wire
@pytest.mark.parametrize(("thread", "run"), [("t1", "nobody"), ("nobody", None), ("nobody", "r1"), (None, None)])
async def test_cancelling_what_is_not_there_is_refused(connect: Connect, thread: str | None, run: str | None) -> None:
    client = await connect(silent)
    await begin_run(client)
    with pytest.raises(Refused, match="RUN_NOT_FOUND"):
        await client.cancel(thread, run)
    assert (await client.cancel("t1", "r1"))["events"] == 5  # it was still open: start, three of text, end


@pytest.mark.wire
async def test_a_cancel_inside_an_input_addresses_its_thread(connect: Connect) -> None:
    client = await connect(silent)
    stream = await begin_run(client)
    result = await client.command(ask(run="c1", forwardedProps={"command": {"type": "cancel"}}))
    assert (result["command"], result["runId"], result["status"]) == ("cancel", "r1", "cancelled")
    assert outcome(await stream.rest()) == "cancelled"
