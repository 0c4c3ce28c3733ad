"""An agent that is a server elsewhere: its events are handed on, and its run is cancelled with ours."""

from collections.abc import AsyncIterator, Iterator

import pytest

from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.loader import load_agent
from tests.requirements import requirement
from tests.sockets.client import HttpExchange, ask, close_all, get, is_text, post, request, run_input
from tests.sockets.process import ServerProcess


@pytest.fixture(autouse=True)
async def leave_nothing_open() -> AsyncIterator[None]:
    """Close the connections of the test."""
    yield
    await close_all()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ServerProcess]:
    """The server elsewhere, with the built-in assistant."""
    with ServerProcess(AGUI_AGENT="assistant", AGUI_SCOPE="none") as running:
        yield running


@pytest.fixture(scope="module")
def here(elsewhere: ServerProcess) -> Iterator[ServerProcess]:
    """The server in front of it."""
    with ServerProcess(AGUI_AGENT=f"http://127.0.0.1:{elsewhere.port}/invocations") as running:
        yield running


@requirement("agent.remote")
async def test_a_run_is_that_of_the_server_elsewhere(here: ServerProcess, elsewhere: ServerProcess) -> None:
    asked = run_input("calculate 6*7")
    answered = await ask(here.port, post(asked))
    types = [event["type"] for event in answered.events]
    assert (types[0], types[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert "TOOL_CALL_RESULT" in types
    there = await get(elsewhere.port, f"/threads/{asked['threadId']}")
    assert there["messages"][-1]["content"] == "The result of calculate is 42."


@requirement("agent.remote")
async def test_a_cancelled_run_is_cancelled_elsewhere(here: ServerProcess, elsewhere: ServerProcess) -> None:
    asked = run_input("wait 3600")
    reading = await (await HttpExchange.open(here.port, post(asked))).until(is_text)
    await ask(here.port, request("POST", f"/runs/{asked['runId']}/cancel?threadId={asked['threadId']}"))
    assert (await reading.rest()).events[-1]["type"] == "RUN_FINISHED"
    there = await ask(elsewhere.port, request("GET", f"/runs/{asked['runId']}/events?threadId={asked['threadId']}"))
    assert there.events[-1]["outcome"]["type"] == "cancelled"


@requirement("agent.remote")
def test_an_arn_of_something_else_is_refused() -> None:
    with pytest.raises(AgentLoadError, match="is no ARN of an AgentCore runtime"):
        load_agent("arn:aws:s3:::bucket")
