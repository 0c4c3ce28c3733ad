"""Forks of threads: their history, their status, and calls that wait in them."""

import pytest

from agui_container.ports.records import ThreadStatus
from tests.behaviour.over_platform import refusals_are_folded
from tests.behaviour.test_threads import refusal, send_command, silent, store_of
from tests.conftest import Connect
from tests.engine.conversations import ANSWER, CALLS, QUESTION, RESULT, store_active_run, store_conversation
from tests.engine.doubles import Json
from tests.requirements import requirement

pytestmark = pytest.mark.durable


@requirement("thread.commands", "thread.fork")
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


@requirement("thread.fork")
@refusals_are_folded
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


@requirement("thread.fork", "thread.status")
@pytest.mark.parametrize(("message", "turn"), [("m1", "user_turn"), ("m2", "client_tool_turn"), ("m3", "user_turn")])
async def test_the_status_of_a_fork_follows_its_last_message(connect: Connect, message: str, turn: str) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    assert (await send_command(client, "fork", threadId="t1", messageId=message))["status"] == turn


@requirement("thread.fork", "thread.status")
@pytest.mark.parametrize("metadata", [{"durationMs": 0}, {"failed": True}, {"failed": True, "denied": True}])
async def test_a_fork_at_a_call_that_the_server_has_answered_waits_for_no_client(
    connect: Connect, metadata: Json
) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), QUESTION, CALLS, {**RESULT, "metadata": metadata}, ANSWER)
    assert (await send_command(client, "fork", threadId="t1", messageId="m2"))["status"] == "user_turn"


@requirement("thread.fork", "thread.status")
@pytest.mark.parametrize("turn", [ThreadStatus.USER_TURN, ThreadStatus.CLIENT_TOOL_TURN])
async def test_a_call_that_is_open_in_a_thread_waits_for_the_same_one_on_its_fork(
    connect: Connect, turn: ThreadStatus
) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client), QUESTION, CALLS, turn=turn)
    assert (await send_command(client, "fork", threadId="t1", messageId="m2"))["status"] == turn


@requirement("thread.fork", "thread.status")
@pytest.mark.parametrize(
    ("metadata", "message", "turn"),
    [
        ({}, "m2", "client_tool_turn"),
        ({}, "s29", "client_tool_turn"),
        ({}, "m3", "user_turn"),
        ({"durationMs": 1}, "m2", "user_turn"),
        ({"durationMs": 1}, "s29", "user_turn"),
    ],
)
async def test_a_fork_finds_the_calls_of_its_turn_among_many_messages(
    connect: Connect, metadata: Json, message: str, turn: str
) -> None:
    client = await connect(silent)
    steps = [{"id": f"s{n}", "role": "assistant", "content": "", "subagentRunId": "sub"} for n in range(60)]
    talk = [QUESTION, CALLS, *steps[:30], {**RESULT, "metadata": metadata}, *steps[30:], ANSWER]
    await store_conversation(store_of(client), *talk)
    assert (await send_command(client, "fork", threadId="t1", messageId=message))["status"] == turn


@requirement("thread.fork", "thread.status")
async def test_a_call_that_is_open_before_many_messages_waits_for_no_client_on_a_fork(connect: Connect) -> None:
    client = await connect(silent)
    steps = [{"id": f"s{n}", "role": "assistant", "content": "", "subagentRunId": "sub"} for n in range(30)]
    await store_conversation(store_of(client), QUESTION, CALLS, *steps)
    assert (await send_command(client, "fork", threadId="t1", messageId="s29"))["status"] == "user_turn"


@requirement("thread.fork-busy", "thread.unknown")
@refusals_are_folded
async def test_a_message_that_is_being_written_cannot_be_forked(connect: Connect) -> None:
    client = await connect(silent)
    await store_conversation(store_of(client))
    await store_active_run(store_of(client), {"id": "m5", "role": "user", "content": "and 7*8"})
    assert (await refusal(client, "fork", threadId="t1", messageId="m5")).code == "THREAD_BUSY"
    assert (await refusal(client, "fork", threadId="t1", messageId="m9")).code == "THREAD_NOT_FOUND"
    assert (await send_command(client, "fork", threadId="t1", messageId="m4"))["forkedFrom"]["messageId"] == "m4"
