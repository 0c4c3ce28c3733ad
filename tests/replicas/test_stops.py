"""A stopped process, and its runs as the next process on its database finds them."""

import asyncio

import pytest

from tests.replicas.conftest import Start
from tests.requirements import requirement
from tests.sockets.client import HttpExchange, ask, get, is_text, post, request, run_input
from tests.sockets.process import ServerProcess


@pytest.fixture(params=["process", "replica"])
def begin(request: pytest.FixtureRequest) -> Start:
    """Return the function that starts a process, on one file or on one PostgreSQL and one Redis."""
    chosen: Start = request.getfixturevalue(request.param)
    return chosen


async def events_of(server: ServerProcess, run: str, thread: str) -> bytes:
    """Return the events of a run as this server sends them."""
    return (await ask(server.port, request("GET", f"/runs/{run}/events?threadId={thread}"))).body


@requirement("durable.stop")
async def test_a_process_that_is_stopped_ends_its_runs_and_the_next_one_has_their_ends(begin: Start) -> None:
    before, asked = begin(), run_input("hold")
    run, thread = asked["runId"], asked["threadId"]
    held = await (await HttpExchange.open(before.port, post(asked))).until(is_text)
    before.term()
    seen = (await held.rest()).events
    assert before.wait() == 0
    assert [event["type"] for event in seen[-2:]] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert seen[-1]["code"] == "SHUTTING_DOWN"
    after = begin()
    again = await (await HttpExchange.open(after.port, post(asked))).rest()
    assert again.events == seen
    assert await events_of(after, run, thread) == (await ask(after.port, post(asked))).body
    stands = await get(after.port, f"/runs/{run}?threadId={thread}")
    assert (stands["status"], stands["error"]["code"]) == ("error", "SHUTTING_DOWN")
    kept = await get(after.port, f"/threads/{thread}")
    assert [message.get("content") for message in kept["messages"]] == ["hold", "before "]
    answered = await ask(after.port, post(run_input("hello", thread=thread)))
    assert answered.events[-1]["type"] == "RUN_FINISHED"


@requirement("drain.behind")
async def test_a_stop_reaches_readers_and_store_in_time_although_the_store_is_behind(begin: Start) -> None:
    before, asked = begin(), [run_input("stream 400000") for _ in range(3)]
    streams = [await (await HttpExchange.open(before.port, post(each))).until(is_text) for each in asked]
    before.term()
    seen = [(await stream.rest()).events for stream in streams]
    assert await asyncio.to_thread(before.wait) == 0
    assert before.faults == []
    after = begin()
    for each, events in zip(asked, seen, strict=True):
        assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "SHUTTING_DOWN")
        assert (await ask(after.port, post(each))).events == events
        stands = await get(after.port, f"/runs/{each['runId']}?threadId={each['threadId']}")
        assert (stands["status"], stands["error"]["code"]) == ("error", "SHUTTING_DOWN")


@requirement("replica.history", "durable.restart")
async def test_an_agent_sees_what_was_said_before_the_restart(process: Start) -> None:
    before, asked = process(), run_input("calculate 6*7")
    await ask(before.port, post(asked))
    assert before.stop() == 0
    after = process()
    later = await ask(after.port, post(run_input("hello", thread=asked["threadId"])))
    alone = await ask(after.port, post(run_input("hello")))
    tokens, few = (answer.events[-1]["usage"][0]["inputTokens"] for answer in (later, alone))
    assert tokens > few + 10
