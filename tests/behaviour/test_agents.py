"""Forms of agents, and the arguments that they get."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import (
    CustomEvent,
    RunAgentInput,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)

from agui_container.ports import Item, RunContext
from tests.behaviour.client import begin_run, text, types
from tests.conftest import Connect
from tests.engine.doubles import WAIT, Json, agent_of, ask, eventually, wait_for_event

MESSAGE = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
SESSION = "x-amzn-bedrock-agentcore-runtime-session-id"


@pytest.mark.wire
@pytest.mark.platform
async def test_strings_stream_as_one_message(connect: Connect) -> None:
    client = await connect(agent_of("Hello ", "", "world"))
    events = await client.run(ask())
    assert types(events) == ["RUN_STARTED", *MESSAGE, "RUN_FINISHED"]
    assert text(events) == "Hello world"
    assert events[1]["role"] == "assistant"


@pytest.mark.wire
async def test_the_context_says_who_asks_and_for_what(connect: Connect) -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        headers = {name: value for name, value in ctx.caller.headers.items() if name not in (SESSION, "x-request-id")}
        facts = [ctx.thread_id, ctx.run_id, ctx.caller.session_id, ctx.caller.request_id, ctx.workload_token]
        yield CustomEvent(name="facts", value=facts)
        yield CustomEvent(name="headers", value=headers)

    client = await connect(agent)
    given = {"authorization": "Bearer abc", "WorkloadAccessToken": "wat", "X-Amzn-Custom-Tenant": "t"}
    hidden = {"cookie": "secret=1", "user_agent": "me", "referer": "http://x"}
    if client.transport == "inprocess":
        given, hidden = {name.lower(): value for name, value in given.items()}, {}
    asking = client.with_headers(x_request_id="req-1", **{SESSION.replace("-", "_"): "s" * 33}, **given, **hidden)
    facts, headers = [event["value"] for event in await asking.run(ask()) if event["type"] == "CUSTOM"]
    assert facts == ["t1", "r1", "s" * 33, "req-1", "wat"]
    assert headers == {name.lower(): value for name, value in given.items()}


@pytest.mark.wire
async def test_unknown_fields_reach_the_agent(connect: Connect) -> None:
    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        yield CustomEvent(name="input", value=asked.model_dump(by_alias=True))

    body = ask(novelty={"a": [1, None]}, forwardedProps={"x": 1}, state={"s": 1})
    body["messages"][0]["mood"] = "good"
    client = await connect(agent)
    [seen] = [event["value"] for event in await client.run(body) if event["type"] == "CUSTOM"]
    assert seen["novelty"] == {"a": [1, None]}
    assert (seen["forwardedProps"], seen["state"]) == ({"x": 1}, {"s": 1})
    assert seen["messages"][0]["mood"] == "good"


@pytest.mark.parametrize("fields", [{}, {"tools": None, "context": None, "state": None, "forwardedProps": None}])
async def test_absent_fields_have_their_meaning(connect: Connect, fields: Json) -> None:
    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        yield CustomEvent(name="input", value=[asked.tools, asked.context, asked.state, asked.forwarded_props])

    client = await connect(agent)
    events = await client.run({"threadId": "t", "runId": "r", "messages": [], **fields})
    assert events[1]["value"] == [[], [], {}, {}]


@pytest.mark.wire
async def test_a_long_delta_leaves_in_pieces(connect: Connect) -> None:
    long, arguments = "\N{GRINNING FACE}" * 12_000, '{"a":"%s"}' % ("\\u0000" * 20_000)

    items = (
        TextMessageStartEvent(message_id="m", role="assistant"),
        TextMessageContentEvent(message_id="m", delta=long, metadata={"k": 1}, raw_event={"r": 1}),
        ToolCallStartEvent(tool_call_id="c", tool_call_name="tool"),
        ToolCallArgsEvent(tool_call_id="c", delta=arguments),
        ToolCallEndEvent(tool_call_id="c"),
    )
    client = await connect(agent_of(*items))
    events = await client.run(ask())
    pieces = [event for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert text(events) == long
    assert len(pieces) > 1
    assert [piece.get("metadata") for piece in pieces] == [{"k": 1}] + [None] * (len(pieces) - 1)
    assert [piece.get("rawEvent") for piece in pieces] == [{"r": 1}] + [None] * (len(pieces) - 1)
    assert "".join(event["delta"] for event in events if event["type"] == "TOOL_CALL_ARGS") == arguments
    assert all(len(str(event).encode()) < 32_000 for event in events)


async def test_background_work_outlives_its_run_and_keeps_the_server_busy(connect: Connect) -> None:
    go_on, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        done.set()

    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.background(work())
        yield "hi"

    client = await connect(agent)
    assert types(await client.run(ask()))[-1] == "RUN_FINISHED"
    assert client.service.health.report()["status"] == "HealthyBusy"
    go_on.set()
    await wait_for_event(done)
    await eventually(lambda: client.service.health.report()["status"] == "Healthy")


async def test_background_work_reads_the_last_state_of_its_run(connect: Connect) -> None:
    go_on: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    seen: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        async def work() -> None:
            await go_on
            seen.set_result(ctx.state.value)

        ctx.background(work())
        yield StateSnapshotEvent(snapshot={"step": 1})
        yield StateDeltaEvent(delta=[{"op": "replace", "path": "/step", "value": 2}])

    client = await connect(agent)
    assert types(await client.run(ask()))[-1] == "RUN_FINISHED"
    go_on.set_result(None)
    async with asyncio.timeout(WAIT):
        assert await seen == {"step": 2}


async def test_the_context_says_when_the_run_is_over(connect: Connect) -> None:
    seen: list[bool] = []
    done = asyncio.Event()

    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        seen.append(ctx.cancelled)
        try:
            yield "hi"
            await asyncio.Event().wait()
        finally:
            seen.append(ctx.cancelled)
            done.set()

    client = await connect(agent)
    await begin_run(client)
    await client.cancel("t1")
    await wait_for_event(done)
    assert seen == [False, True]
