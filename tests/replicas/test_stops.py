"""A stopped process, and its runs as the next process on its database finds them."""

import pytest

from tests.replicas.conftest import Start
from tests.server.sockets.client import HttpExchange, ask, get, is_text, post, request, run_input
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]


@pytest.fixture(params=["process", pytest.param("replica", marks=pytest.mark.services)])
def begin(request: pytest.FixtureRequest) -> Start:
    """Return the function that starts a process, on one file or on one PostgreSQL and one Redis."""
    chosen: Start = request.getfixturevalue(request.param)
    return chosen


async def events_of(server: ServerProcess, run: str, thread: str) -> bytes:
    """Return the events of a run as this server sends them."""
    return (await ask(server.port, request("GET", f"/runs/{run}/events?threadId={thread}"))).body


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
