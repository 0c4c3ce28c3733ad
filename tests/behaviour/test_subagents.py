"""Work that an assistant hands to other agents: attributed, nested, failing alone."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from ag_ui.core import (
    ActivitySnapshotEvent,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallEndEvent,
    ToolCallStartEvent,
    UserMessage,
)

from agui_container.agents.assistant.assistant import SYSTEM_PROMPT, Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import IllegalEvent
from agui_container.tools.function_tool import tool
from tests.behaviour.client import outcome, text, types
from tests.behaviour.subagents import make_delegating_assistant, of_type, parts, team
from tests.conftest import Connect
from tests.engine.doubles import WAIT, agent_of, ask, wait_for_event
from tests.requirements import requirement


@requirement("sub.attributed")
async def test_all_events_of_a_subagent_are_attributed_to_it(connect: Connect) -> None:
    events = await (await connect(team())).run(ask(text="delegate calculate 6*7"))
    names = types(events)
    first, last = names.index("SUBAGENT_STARTED"), names.index("SUBAGENT_FINISHED")
    [key] = parts(events)
    tags = [event.get("subagentRunId") for event in events]
    start, end = tags.index(key), len(tags) - tags[::-1].index(key)
    assert set(tags[start:end]) == {key}
    assert set(tags[:start] + tags[end:]) == {None}
    assert first < names.index("TOOL_CALL_START", first) < last
    call = of_type(events, "TOOL_CALL_START")[0]
    assert events[start]["parentToolCallId"] == call["toolCallId"]
    assert of_type(events, "TOOL_CALL_RESULT")[-1]["content"] == "The result of calculate is 42."


@requirement("sub.nested")
async def test_a_subagent_may_delegate(connect: Connect) -> None:
    events = await (await connect(team())).run(ask(text="delegate delegate calculate 1+2"))
    outer, inner = of_type(events, "SUBAGENT_STARTED")
    assert "parentSubagentRunId" not in outer
    assert inner["parentSubagentRunId"] == outer["subagentRunId"]
    calls = {event["toolCallName"]: event.get("subagentRunId") for event in of_type(events, "TOOL_CALL_START")}
    assert calls["calculate"] == inner["subagentRunId"]
    ends = [event["subagentRunId"] for event in of_type(events, "SUBAGENT_FINISHED")]
    assert ends == [inner["subagentRunId"], outer["subagentRunId"]]
    assert "is 3" in text(events)


@requirement("sub.parallel")
async def test_two_subagents_work_side_by_side(connect: Connect) -> None:
    meeting = asyncio.Barrier(2)

    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield "one "
        async with asyncio.timeout(WAIT):
            await meeting.wait()
        yield "two"

    both = 'call delegate {"task": "a"}\ncall delegate {"task": "b"}'
    events = await (await connect(make_delegating_assistant(agent))).run(ask(text=both))
    names = [name for name in types(events) if name.startswith("SUBAGENT")]
    assert names == ["SUBAGENT_STARTED", "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_FINISHED"]
    assert [event["content"] for event in of_type(events, "TOOL_CALL_RESULT")] == ["one two", "one two"]
    assert len(set(parts(events))) == 2


@requirement("sub.any-agent")
async def test_any_agent_can_be_a_subagent(connect: Connect) -> None:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        assert (input.thread_id, input.tools, ctx.thread_id) == (ctx.thread_id, [], input.thread_id)
        yield "A string, "
        yield TextMessageChunkEvent(message_id="chunked", role="assistant", delta=f"and {input.messages[0].content}.")
        yield MessagesSnapshotEvent(messages=[UserMessage(id="mine", content="private")])
        yield TextMessageChunkEvent(message_id="last", role="assistant", delta="The end.")

    events = await (await connect(make_delegating_assistant(agent))).run(ask(text="delegate chunks"))
    [key] = parts(events)
    assert {event["subagentRunId"] for event in of_type(events, "TEXT_MESSAGE_START")[:3]} == {key}
    assert "MESSAGES_SNAPSHOT" not in types(events)
    assert of_type(events, "TOOL_CALL_RESULT")[0]["content"] == "The end."


async def raise_error(input: RunAgentInput) -> AsyncIterator[Item]:
    yield TextMessageStartEvent(message_id="open", role="assistant")
    raise RuntimeError("secret")


async def yield_run_error(input: RunAgentInput) -> AsyncIterator[Item]:
    yield TextMessageStartEvent(message_id="open", role="assistant")
    yield RunErrorEvent(message="I give up.", code="TIRED")


async def yield_illegal_event(input: RunAgentInput) -> AsyncIterator[Item]:
    yield TextMessageStartEvent(message_id="open", role="assistant")
    yield TextMessageContentEvent(message_id="other", delta="x")


async def yield_cancelled_end(input: RunAgentInput) -> AsyncIterator[Item]:
    yield TextMessageStartEvent(message_id="open", role="assistant")
    yield RunFinishedEvent(thread_id="t", run_id="r", outcome=RunFinishedCancelledOutcome())


GENERAL = "The agent failed; the server's log has the cause."


@requirement("sub.fails")
@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (raise_error, GENERAL),
        (yield_run_error, "I give up."),
        (yield_illegal_event, GENERAL),
        (yield_cancelled_end, "The agent was cancelled."),
    ],
)
async def test_a_subagent_fails_without_ending_the_run(connect: Connect, agent: object, message: str) -> None:
    events = await (await connect(make_delegating_assistant(agent))).run(ask(text="delegate x"))
    [error] = of_type(events, "SUBAGENT_ERROR")
    assert (error["message"], error["subagentRunId"]) == (message, parts(events)[0])
    names = types(events)
    assert names.index("TEXT_MESSAGE_END") < names.index("SUBAGENT_ERROR") < names.index("TOOL_CALL_RESULT")
    assert of_type(events, "TOOL_CALL_RESULT")[0]["content"] == f"Error: {message}"
    assert outcome(events) == "success"
    assert "secret" not in str(events)


@requirement("assistant.half-pairs")
@pytest.mark.parametrize(
    ("given", "result", "content"),
    [
        ("cut \ud83d", "cut \ufffd", "cut \ufffd"),
        ({"\ud83d": ["cut \ude00"]}, {"\ufffd": ["cut \ufffd"]}, '{"\ufffd":["cut \ufffd"]}'),
    ],
    ids=["text", "object"],
)
async def test_half_of_a_surrogate_pair_in_a_subagents_result_is_replaced(
    connect: Connect, given: object, result: object, content: str
) -> None:
    events = await (
        await connect(make_delegating_assistant(agent_of(RunFinishedEvent(thread_id="t", run_id="r", result=given))))
    ).run(ask(text="delegate x"))
    assert [event["result"] for event in of_type(events, "SUBAGENT_FINISHED")] == [result]
    assert of_type(events, "TOOL_CALL_RESULT")[0]["content"] == content
    assert outcome(events) == "success"


@requirement("assistant.half-pairs")
async def test_half_of_a_surrogate_pair_in_a_subagents_error_is_replaced(connect: Connect) -> None:
    events = await (await connect(make_delegating_assistant(agent_of(RunErrorEvent(message="cut \ud83d"))))).run(
        ask(text="delegate x")
    )
    assert [event["message"] for event in of_type(events, "SUBAGENT_ERROR")] == ["cut \ufffd"]
    assert of_type(events, "TOOL_CALL_RESULT")[0]["content"] == "Error: cut \ufffd"


@requirement("sub.fails")
async def test_a_task_that_is_none_is_refused(connect: Connect) -> None:
    events = await (await connect(team())).run(ask(text='call delegate {"job": "x"}'))
    assert parts(events) == []
    assert "'task'" in of_type(events, "TOOL_CALL_RESULT")[0]["content"]


@requirement("sub.open-calls")
async def test_calls_that_a_subagent_leaves_open_are_not_the_clients(connect: Connect) -> None:
    events = await (
        await connect(
            make_delegating_assistant(
                agent_of(
                    ToolCallStartEvent(tool_call_id="lost", tool_call_name="somewhere"),
                    ToolCallEndEvent(tool_call_id="lost"),
                )
            )
        )
    ).run(ask(text="delegate x"))
    lost, _ = of_type(events, "TOOL_CALL_RESULT")
    assert (lost["toolCallId"], lost["metadata"]) == ("lost", {"failed": True})
    assert events[-1]["outcome"] == {"type": "success"}


@requirement("sub.usage")
async def test_a_subagents_usage_is_the_runs(connect: Connect) -> None:
    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.usage.append(TokenUsage(model="own", total_tokens=5))
        yield RunFinishedEvent(
            thread_id="t", run_id="r", usage=[TokenUsage(model="own", total_tokens=7)], result={"sum": 12}
        )

    events = await (await connect(make_delegating_assistant(agent))).run(ask(text="delegate x"))
    assert {entry["model"]: entry["totalTokens"] for entry in events[-1]["usage"]}["own"] == 12
    assert of_type(events, "SUBAGENT_FINISHED")[0]["result"] == {"sum": 12}
    assert of_type(events, "TOOL_CALL_RESULT")[0]["content"] == '{"sum":12}'


@requirement("sub.cancelled")
async def test_a_cancel_ends_the_subagent_with_the_run(connect: Connect) -> None:
    left = asyncio.Event()

    async def agent(input: RunAgentInput) -> AsyncIterator[Item]:
        try:
            yield "working"
            await asyncio.Event().wait()
        finally:
            left.set()

    client = await connect(make_delegating_assistant(agent))
    stream = await client.start(ask(text="delegate x"))
    await stream.until("TEXT_MESSAGE_CONTENT")
    await client.cancel("t1", "r1")
    events = await stream.rest()
    assert types(events) == ["TEXT_MESSAGE_END", "SUBAGENT_ERROR", "RUN_FINISHED"]
    assert outcome(events) == "cancelled"
    await wait_for_event(left)


@requirement("sub.history")
async def test_messages_of_subagents_are_not_in_the_assistants_history(connect: Connect) -> None:
    private = {"id": "s1", "role": "assistant", "content": "secret plan", "subagentRunId": "sub"}
    said = {"id": "u2", "role": "user", "content": "stream 1"}
    events = await (await connect(team())).run(ask(messages=[private, said]))
    system = len(SYSTEM_PROMPT.split())
    assert events[-1]["usage"][0]["inputTokens"] == system + 2


@tool
def chatty(n: int, ctx: RunContext) -> str:
    """Show progress from a thread."""
    for step in range(20):
        ctx.emit(ActivitySnapshotEvent(message_id=f"{ctx.tool_call_id}-{step}", activity_type="P", content={"n": n}))
        ctx.emit(TextMessageChunkEvent(message_id=f"{ctx.tool_call_id}-text", role="assistant", delta="."))
    return "done"


@tool
def usurper(ctx: RunContext) -> str:
    """End what is not its own."""
    for event in (
        RunFinishedEvent(thread_id="t", run_id="r", result="forged"),
        RunErrorEvent(message="forged"),
    ):
        with pytest.raises(IllegalEvent):
            ctx.emit(event)
    return "real"


@requirement("sub.tools")
async def test_tools_of_a_subagent_may_emit_from_threads_side_by_side(connect: Connect) -> None:
    helper = Assistant(OfflineModel(), (chatty,))
    lines = "\n".join(f'call chatty {{"n": {n}}}' for n in range(3))
    events = await (await connect(make_delegating_assistant(helper))).run(ask(text=f"delegate {lines}"))
    [key] = parts(events)
    activities = of_type(events, "ACTIVITY_SNAPSHOT")
    assert len(activities) == 60
    assert {event["subagentRunId"] for event in activities} == {key}
    results = [event["content"] for event in of_type(events, "TOOL_CALL_RESULT")]
    assert results[:3] == ["done"] * 3
    assert outcome(events) == "success"


@requirement("sub.tools")
async def test_a_tool_of_a_subagent_does_not_end_it(connect: Connect) -> None:
    helper = Assistant(OfflineModel(), (usurper,))
    events = await (await connect(make_delegating_assistant(helper))).run(ask(text="delegate call usurper"))
    assert [event["content"] for event in of_type(events, "TOOL_CALL_RESULT")] == [
        "real",
        "The result of usurper is real.",
    ]
    assert "forged" not in str(events)


@requirement("sub.tools")
async def test_events_emitted_after_the_end_of_a_subagent_are_dropped(connect: Connect) -> None:
    kept: list[RunContext] = []

    async def helper(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        kept.append(ctx)
        yield "done"

    agent = make_delegating_assistant(helper)

    async def late(arguments: object) -> str:
        kept[0].emit("too late")
        return "later"

    @tool
    async def after(ctx: RunContext) -> str:
        """Emit through the context of a subagent that is over."""
        return await late(ctx)

    agent = replace(agent, tools=(*agent.tools, after))
    client = await connect(agent)
    await client.run(ask(text="delegate x"))
    events = await client.run(ask(run="r2", text="call after"))
    assert "too late" not in str(events)
    assert outcome(events) == "success"


@requirement("sub.tools")
async def test_a_chunk_that_a_subagent_may_not_begin_is_not_one_of_its_streams(connect: Connect) -> None:
    """A chunk that is refused, which its agent takes in its stride."""

    async def helper(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        yield TextMessageStartEvent(message_id="m", role="assistant")
        with pytest.raises(IllegalEvent):
            ctx.emit(TextMessageChunkEvent(message_id="m", role="assistant", delta="a"))
        yield TextMessageEndEvent(message_id="m")
        yield "done"

    events = await (await connect(make_delegating_assistant(helper))).run(ask(text="delegate go"))
    assert "done" in {event["delta"] for event in of_type(events, "TEXT_MESSAGE_CONTENT")}
    assert of_type(events, "SUBAGENT_ERROR") == []
