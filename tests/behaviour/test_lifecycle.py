"""Starts and ends of runs of well-behaved and slightly wrong agents."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui import core as ag

from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from tests.behaviour.client import begin_run, outcome, types
from tests.conftest import Connect
from tests.engine.doubles import START, agent_of, ask
from tests.protocol.samples import without_validation


@pytest.mark.wire
async def test_a_run_begins_with_its_ids_and_ends_in_success(connect: Connect) -> None:
    client = await connect(agent_of(ag.CustomEvent(name="n", value=1)))
    started, custom, finished = await client.run(ask("thread-7", "run-7"))
    ids = {"threadId": "thread-7", "runId": "run-7"}
    assert {**started, "timestamp": 0} == {"type": "RUN_STARTED", "timestamp": 0, **ids, "protocolVersion": "1.0"}
    assert custom == {"type": "CUSTOM", "name": "n", "value": 1}
    assert {**finished, "timestamp": 0} == {
        "type": "RUN_FINISHED",
        "timestamp": 0,
        **ids,
        "outcome": {"type": "success"},
    }


async def test_the_start_names_the_parent_run_and_the_time(connect: Connect) -> None:
    client = await connect(agent_of("hi"))
    events = await client.run(ask(parentRunId="r0"))
    assert events[0]["parentRunId"] == "r0"
    assert events[0]["timestamp"] == events[-1]["timestamp"] == int(START * 1000)


async def test_the_agents_own_end_keeps_its_result_and_gets_the_runs_ids(connect: Connect) -> None:
    client = await connect(
        agent_of(ag.RunFinishedEvent(thread_id="wrong", run_id="wrong", result={"answer": 42}, timestamp=7))
    )
    finished = (await client.run(ask("t", "r")))[-1]
    assert (finished["threadId"], finished["runId"]) == ("t", "r")
    assert (finished["result"], finished["timestamp"]) == ({"answer": 42}, 7)


async def test_the_agents_own_start_is_absorbed(connect: Connect) -> None:
    client = await connect(agent_of(ag.RunStartedEvent(thread_id="t", run_id="r"), ag.CustomEvent(name="n", value=1)))
    assert types(await client.run(ask())) == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]


@pytest.mark.wire
async def test_entities_that_an_agent_leaves_open_are_closed_in_reverse(connect: Connect) -> None:
    opened = [
        ag.StepStartedEvent(step_name="s"),
        ag.SubagentStartedEvent(subagent_run_id="sub", name="helper"),
        ag.TextMessageStartEvent(message_id="m", role="assistant", subagent_run_id="sub"),
        ag.ReasoningStartEvent(message_id="g"),
        ag.ReasoningMessageStartEvent(message_id="g", role="reasoning"),
    ]
    client = await connect(agent_of(*opened, "hi"))
    events = await client.run(ask())
    assert types(events)[-7:] == [
        "TEXT_MESSAGE_END",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_END",
        "SUBAGENT_FINISHED",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]
    assert events[-4] == {"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "sub"}
    assert outcome(events) == "success"


@pytest.mark.parametrize("last", [ag.RunFinishedEvent(thread_id="t1", run_id="r1"), ag.RunErrorEvent(message="over")])
async def test_items_after_the_terminal_event_are_dropped(connect: Connect, last: Item) -> None:
    client = await connect(
        agent_of(last, "more", ag.RunErrorEvent(message="no"), ag.RunFinishedEvent(thread_id="t1", run_id="r1"))
    )
    events = await client.run(ask())
    assert len(events) == 2
    assert types(await (await client.attach("t1", "r1")).rest()) == types(events)


async def test_success_names_the_calls_that_nobody_answered(connect: Connect) -> None:
    async def agent(_: ag.RunAgentInput) -> AsyncIterator[Item]:
        for call in ("c1", "c2", "c3"):
            yield ag.ToolCallStartEvent(tool_call_id=call, tool_call_name="tool")
            yield ag.ToolCallEndEvent(tool_call_id=call)
        yield ag.ToolCallResultEvent(message_id="m", tool_call_id="c2", content="done")

    client = await connect(agent)
    finished = (await client.run(ask()))[-1]
    assert finished["outcome"] == {"type": "success", "pendingToolCallIds": ["c1", "c3"]}


async def test_a_call_of_the_history_may_be_answered(connect: Connect) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "tool", "arguments": "{}"}}
    client = await connect(agent_of(ag.ToolCallResultEvent(message_id="m", tool_call_id="c", content="done")))
    events = await client.run(ask(messages=[{"id": "a", "role": "assistant", "toolCalls": [call]}]))
    assert types(events) == ["RUN_STARTED", "TOOL_CALL_RESULT", "RUN_FINISHED"]
    assert events[-1]["outcome"] == {"type": "success"}


async def test_an_interrupt_passes_with_its_open_message_closed(connect: Connect) -> None:
    asked = [ag.Interrupt(id=key, reason="approval") for key in ("i1", "i2")]
    waits = ag.RunFinishedInterruptOutcome(interrupts=asked)
    client = await connect(agent_of("May I?", ag.RunFinishedEvent(thread_id="t1", run_id="r1", outcome=waits)))
    events = await client.run(ask())
    assert types(events)[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert events[-1]["outcome"]["interrupts"] == [{"id": key, "reason": "approval"} for key in ("i1", "i2")]
    assert (await client.cancel("t1", "r1"))["status"] == "cancelled"


async def test_an_agent_may_end_as_cancelled_with_a_call_open(connect: Connect) -> None:
    client = await connect(
        agent_of(
            ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="tool"),
            ag.RunFinishedEvent(thread_id="t1", run_id="r1", outcome=ag.RunFinishedCancelledOutcome()),
        )
    )
    events = await client.run(ask())
    assert types(events) == ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_END", "RUN_FINISHED"]
    assert outcome(events) == "cancelled"


@pytest.mark.wire
@pytest.mark.parametrize("end", ["returns", "finishes", "raises", "reports", "is cancelled"])
async def test_usage_is_summed_on_every_end(connect: Connect, end: str) -> None:
    own = [ag.TokenUsage(model="a", input_tokens=1)]

    async def agent(_: ag.RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.usage.append(ag.TokenUsage(model="a", input_tokens=10, output_tokens=5))
        ctx.usage.append(ag.TokenUsage(model="b", output_tokens=2))
        yield ag.TextMessageStartEvent(message_id="m", role="assistant")
        yield ag.TextMessageContentEvent(message_id="m", delta="x")
        match end:
            case "finishes":
                yield ag.RunFinishedEvent(thread_id="t1", run_id="r1", usage=own)
            case "raises":
                raise AppError(ErrorCode.MODEL_ERROR, "The model failed.")
            case "reports":
                yield ag.RunErrorEvent(message="no", usage=own)
            case "is cancelled":
                await asyncio.Event().wait()

    client = await connect(agent)
    stream = await begin_run(client)
    if end == "is cancelled":
        await client.cancel("t1")
    last = (await stream.rest())[-1]
    counted = 11 if end in ("finishes", "reports") else 10
    assert sorted(last["usage"], key=lambda entry: entry["model"]) == [
        {"model": "a", "inputTokens": counted, "outputTokens": 5},
        {"model": "b", "outputTokens": 2},
    ]


@pytest.mark.parametrize("usage", ["none", *(without_validation(ag.TokenUsage, input_tokens=n) for n in ("many", 1.5))])
async def test_usage_that_cannot_be_added_up_is_left_out(connect: Connect, usage: ag.TokenUsage) -> None:
    async def agent(_: ag.RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.usage.append(usage)
        yield "hi"

    client = await connect(agent)
    last = (await client.run(ask()))[-1]
    assert last["outcome"] == {"type": "success"}
    assert "usage" not in last
