"""Forks of threads: their history, their status, and calls that wait in them."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, TextMessageChunkEvent, ToolCallEndEvent, ToolCallStartEvent, ToolMessage

from agui_container import RunContext
from agui_container.ports import Item
from agui_container.ports.records import ThreadStatus
from tests.agents.turns import POLICY, pay, refund
from tests.behaviour.approval_tools import with_tools
from tests.behaviour.test_threads import refusal, run_and_wait, send_command, silent, store_of, wait_for_thread
from tests.conftest import Connect
from tests.engine.conversations import ANSWER, CALLS, QUESTION, RESULT, store_active_run, store_conversation
from tests.engine.doubles import Json, ask


async def test_a_fork_goes_its_own_way(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), title="Sums", state={"n": 1})
    fork = await send_command(client, "fork", threadId="t1", messageId="m3")
    assert fork["threadId"] not in {"t1", ""}
    assert (fork["title"], fork["forkedFrom"]) == ("Sums", {"threadId": "t1", "messageId": "m3"})
    thread = await send_command(client, "get", threadId=fork["threadId"])
    assert (thread["messages"], thread["state"]) == ([QUESTION, CALLS, RESULT], {"n": 1})
    await send_command(client, "delete", threadId="t1")
    assert (await send_command(client, "get", threadId=fork["threadId"]))["messages"] == thread["messages"]
    await store_conversation(store_of(client))
    again = await send_command(client, "fork", threadId="t1", messageId="m3")
    assert again["threadId"] != fork["threadId"]


async def test_a_fork_that_is_named_can_be_asked_for_again(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    where = {"threadId": "t1", "messageId": "m3", "newThreadId": "mine"}
    fork = await send_command(client, "fork", **where)
    assert fork["threadId"] == "mine"
    assert await send_command(client, "fork", **where) == fork
    refused = await refusal(client, "fork", **{**where, "messageId": "m1"})
    assert (refused.code, refused.message) == (
        "VALIDATION_ERROR",
        "newThreadId: there is another thread of this id.",
    )


async def call_a_client_tool(run_input: RunAgentInput) -> AsyncIterator[Item]:
    if isinstance(run_input.messages[-1], ToolMessage):
        yield TextMessageChunkEvent(message_id="answered", delta="Red.")
    else:
        yield ToolCallStartEvent(tool_call_id="c1", tool_call_name="paint", parent_message_id="called")
        yield ToolCallEndEvent(tool_call_id="c1")


@pytest.mark.parametrize(
    ("message", "turn"),
    [("m1", "user_turn"), ("called", "client_tool_turn"), ("painted", "user_turn"), ("answered", "user_turn")],
)
async def test_the_status_of_a_fork_follows_its_last_message(connect: Connect, message: str, turn: str) -> None:
    client = await connect(call_a_client_tool)
    paint = {"name": "paint", "description": "", "parameters": {}}
    await client.run(ask(messages=[QUESTION], tools=[paint]))
    result = {"id": "painted", "role": "tool", "toolCallId": "c1", "content": "red"}
    await client.run(ask(run="r2", messages=[result], tools=[paint]))
    await wait_for_thread(client, lambda thread: len(thread["messages"]) == 4)
    assert (await send_command(client, "fork", threadId="t1", messageId=message))["status"] == turn


async def pay_and_refund(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[str]:
    calls = ctx.call_tool("pay", {"amount": 1}), ctx.call_tool("refund", {"amount": 2})
    yield str(await asyncio.gather(*calls))


async def test_a_fork_at_a_call_that_waits_for_approval_is_the_users_turn(connect: Connect) -> None:
    client = await connect(with_tools(pay_and_refund, POLICY, pay, refund))
    thread = await run_and_wait(client, ask())
    called = [message["id"] for message in thread["messages"] if "toolCalls" in message]
    assert len(called) == 2

    async def statuses() -> list[object]:
        return [(await send_command(client, "fork", threadId="t1", messageId=each))["status"] for each in called]

    assert (len(thread["waiting"]), await statuses()) == (2, ["user_turn", "user_turn"])
    await client.run(ask(run="r2", messages=[{"id": "m2", "role": "user", "content": "Well?"}]))
    await wait_for_thread(client, lambda thread: thread["status"] == "user_turn" and len(thread["messages"]) > 3)
    assert await statuses() == ["user_turn", "user_turn"]


@pytest.mark.parametrize("metadata", [{"durationMs": 0}, {"failed": True}, {"failed": True, "denied": True}])
async def test_a_result_of_the_server_says_so_on_a_fork_too_which_has_no_runs(connect: Connect, metadata: Json) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), QUESTION, CALLS, {**RESULT, "metadata": metadata}, ANSWER)
    fork = await send_command(client, "fork", threadId="t1", messageId="m4")
    again = await send_command(client, "fork", threadId=fork["threadId"], messageId="m2")
    assert again["status"] == "user_turn"


@pytest.mark.parametrize("turn", [ThreadStatus.USER_TURN, ThreadStatus.CLIENT_TOOL_TURN])
async def test_a_call_that_is_open_in_a_thread_waits_for_the_same_one_on_its_fork(
    connect: Connect, turn: ThreadStatus
) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), QUESTION, CALLS, turn=turn)
    assert (await send_command(client, "fork", threadId="t1", messageId="m2"))["status"] == turn


async def test_a_message_that_is_being_written_cannot_be_forked(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    await store_active_run(store_of(client), {"id": "m5", "role": "user", "content": "and 7*8"})
    assert (await refusal(client, "fork", threadId="t1", messageId="m5")).code == "THREAD_BUSY"
    assert (await refusal(client, "fork", threadId="t1", messageId="m9")).code == "THREAD_NOT_FOUND"
    assert (await send_command(client, "fork", threadId="t1", messageId="m4"))["forkedFrom"]["messageId"] == "m4"
