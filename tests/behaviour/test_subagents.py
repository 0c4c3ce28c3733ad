"""Work that an assistant hands to other agents: attributed, nested, failing alone."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui import core as ag

from agui_container.assistant.assistant import SYSTEM_PROMPT, Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext
from agui_container.tools.function_tool import tool
from tests.behaviour.client import outcome, text, types
from tests.behaviour.subagents import make_delegating_assistant, of_type, parts, team
from tests.conftest import Connect
from tests.engine.doubles import WAIT, agent_of, ask, wait_for_event


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


async def test_two_subagents_work_side_by_side(connect: Connect) -> None:
    meeting = asyncio.Barrier(2)

    async def agent(input: ag.RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
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


async def test_any_agent_can_be_a_subagent(connect: Connect) -> None:
    async def agent(input: ag.RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        assert (input.thread_id, input.tools, ctx.thread_id) == (ctx.thread_id, [], input.thread_id)
        yield "A string, "
        yield ag.TextMessageChunkEvent(
            message_id="chunked", role="assistant", delta=f"and {input.messages[0].content}."
        )
        yield ag.MessagesSnapshotEvent(messages=[ag.UserMessage(id="mine", content="private")])
        yield ag.TextMessageChunkEvent(message_id="last", role="assistant", delta="The end.")

    events = await (await connect(make_delegating_assistant(agent))).run(ask(text="delegate chunks"))
    [key] = parts(events)
    assert {event["subagentRunId"] for event in of_type(events, "TEXT_MESSAGE_START")[:3]} == {key}
    assert "MESSAGES_SNAPSHOT" not in types(events)
    assert of_type(events, "TOOL_CALL_RESULT")[0]["content"] == "The end."


async def raise_error(input: ag.RunAgentInput) -> AsyncIterator[Item]:
    yield ag.TextMessageStartEvent(message_id="open", role="assistant")
    raise RuntimeError("secret")


async def yield_run_error(input: ag.RunAgentInput) -> AsyncIterator[Item]:
    yield ag.TextMessageStartEvent(message_id="open", role="assistant")
    yield ag.RunErrorEvent(message="I give up.", code="TIRED")


async def yield_illegal_event(input: ag.RunAgentInput) -> AsyncIterator[Item]:
    yield ag.TextMessageStartEvent(message_id="open", role="assistant")
    yield ag.TextMessageContentEvent(message_id="other", delta="x")


async def yield_cancelled_end(input: ag.RunAgentInput) -> AsyncIterator[Item]:
    yield ag.TextMessageStartEvent(message_id="open", role="assistant")
    yield ag.RunFinishedEvent(thread_id="t", run_id="r", outcome=ag.RunFinishedCancelledOutcome())


GENERAL = "The agent failed; the server's log has the cause."


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


async def test_a_task_that_is_none_is_refused(connect: Connect) -> None:
    events = await (await connect(team())).run(ask(text='call delegate {"job": "x"}'))
    assert parts(events) == []
    assert "'task'" in of_type(events, "TOOL_CALL_RESULT")[0]["content"]


async def test_calls_that_a_subagent_leaves_open_are_not_the_clients(connect: Connect) -> None:
    events = await (
        await connect(
            make_delegating_assistant(
                agent_of(
                    ag.ToolCallStartEvent(tool_call_id="lost", tool_call_name="somewhere"),
                    ag.ToolCallEndEvent(tool_call_id="lost"),
                )
            )
        )
    ).run(ask(text="delegate x"))
    lost, _ = of_type(events, "TOOL_CALL_RESULT")
    assert (lost["toolCallId"], lost["metadata"]) == ("lost", {"failed": True})
    assert events[-1]["outcome"] == {"type": "success"}


async def test_a_subagents_usage_is_the_runs(connect: Connect) -> None:
    async def agent(input: ag.RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.usage.append(ag.TokenUsage(model="own", total_tokens=5))
        yield ag.RunFinishedEvent(
            thread_id="t", run_id="r", usage=[ag.TokenUsage(model="own", total_tokens=7)], result={"sum": 12}
        )

    events = await (await connect(make_delegating_assistant(agent))).run(ask(text="delegate x"))
    assert {entry["model"]: entry["totalTokens"] for entry in events[-1]["usage"]}["own"] == 12
    assert of_type(events, "SUBAGENT_FINISHED")[0]["result"] == {"sum": 12}
    assert of_type(events, "TOOL_CALL_RESULT")[0]["content"] == '{"sum":12}'


async def test_a_cancel_ends_the_subagent_with_the_run(connect: Connect) -> None:
    left = asyncio.Event()

    async def agent(input: ag.RunAgentInput) -> AsyncIterator[Item]:
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
    assert types(events) == ["TEXT_MESSAGE_END", "SUBAGENT_ERROR", "TOOL_CALL_RESULT", "RUN_FINISHED"]
    assert outcome(events) == "cancelled"
    await wait_for_event(left)


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
        ctx.emit(ag.ActivitySnapshotEvent(message_id=f"{ctx.tool_call_id}-{step}", activity_type="P", content={"n": n}))
        ctx.emit(ag.TextMessageChunkEvent(message_id=f"{ctx.tool_call_id}-text", role="assistant", delta="."))
    return "done"


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
