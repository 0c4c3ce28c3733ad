"""Other AG-UI servers: AWS's ``AGUIApp``, ag-ui-strands and Pydantic AI's adapter.

They have no commands, so a dropped run is lost and never sent again, and a cancel closes the connection.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from ag_ui.core import BaseEvent, TextMessageContentEvent

from agui_client import (
    ConnectionLostError,
    Outcome,
    Retry,
    RunRefusedError,
    Session,
    SessionStatus,
    ToolCallEvent,
    UnsupportedError,
    client_tool,
)
from tests.agents.frameworks.table import python_of
from tests.ports import free_port
from tests.relay import EventRelay, relay_to
from tests.server.sockets.process import ROOT, program_on

pytestmark = [pytest.mark.wire, pytest.mark.packages]

PYTHON = python_of("strands")
PEERS = ["agentcore", "strands", "pydantic_adapter"]
FAST = Retry(initial_delay=0.02, max_delay=0.1)


@client_tool
def toss(sides: int) -> str:
    """Toss a coin with sides."""
    return f"tossed {sides}"


@contextmanager
def peer(name: str) -> Iterator[int]:
    port = free_port()
    module = f"tests.clients.python.peers.{name}"
    command = (PYTHON, "-m", "bench.peers.serve", module, str(port))
    with program_on(http(port), *command, PYTHONPATH=f"{ROOT}:{ROOT / 'app'}:{ROOT / 'clients/python/src'}"):
        yield port


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(peer(name)) for name in PEERS}


def http(port: int) -> str:
    return f"http://127.0.0.1:{port}/invocations"


@pytest.fixture(params=[http, lambda port: f"ws://127.0.0.1:{port}/ws"], ids=["sse", "websocket"])
def agentcore(request: pytest.FixtureRequest, ports: dict[str, int]) -> str:
    """``AGUIApp`` over each of its transports. Over a WebSocket it sends frames of SSE."""
    url: str = request.param(ports["agentcore"])
    return url


async def test_chunks_arrive_as_the_events_that_they_stand_for(agentcore: str) -> None:
    async with Session.start("hello", url=agentcore) as session:
        events = [event async for event in session.events()]
        assert [event.type.value for event in events] == [
            *("RUN_STARTED", "STATE_SNAPSHOT", "STATE_DELTA", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"),
            *("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"),
        ]
        number = session.state["runs"]  # type: ignore[index]
        assert session.messages[-1].content == f"run {number}: hello of 1"
        await session.send_text("again").run()
        assert session.messages[-1].content == f"run {number + 1}: again of 3"


async def test_a_client_tool_is_run_for_aws_own_server(agentcore: str) -> None:
    calls: list[object] = []
    async with Session.start("use toss", url=agentcore, client_tools=[toss]) as session:
        await session.run(
            on_event=lambda event: calls.append(event.input) if isinstance(event, ToolCallEvent) else None
        )
    assert calls == [{"sides": 6}]
    assert str(session.messages[-1].content).endswith(": tossed 6 of 3")


async def test_a_cancel_closes_the_connection_of_a_server_without_commands(agentcore: str) -> None:
    async with Session.start("wait", url=agentcore) as session:

        async def stop(event: BaseEvent) -> None:
            if isinstance(event, TextMessageContentEvent):
                await session.cancel()

        await session.run(on_event=stop)
        assert (session.outcome, session.status) == (Outcome.CANCELLED, SessionStatus.USER_TURN)
        await session.send_text("hello").run()
        assert str(session.messages[-1].content).endswith(": hello of 3")


async def test_a_refusal_of_another_server_says_why(ports: dict[str, int]) -> None:
    async with Session.start("hello", url=f"http://127.0.0.1:{ports['pydantic_adapter']}/nowhere") as session:
        with pytest.raises(RunRefusedError, match="Not Found") as caught:
            await session.run()
    assert (caught.value.code, caught.value.retryable) == ("HTTP_404", False)


async def test_features_of_agui_container_are_refused_by_name(agentcore: str) -> None:
    async with Session.start("hello", url=agentcore) as session:
        await session.run()
        assert await session.capabilities() is None
        with pytest.raises(UnsupportedError, match=r"threads\.delta|threads\.get"):
            await session.refresh()
        with pytest.raises(UnsupportedError, match=r"threads\.fork"):
            await session.fork(0)


@pytest.fixture
async def relay(ports: dict[str, int]) -> AsyncIterator[EventRelay]:
    async with relay_to(ports["agentcore"]) as relay:
        yield relay


@pytest.mark.parametrize("transport", ["sse", "websocket"])
@pytest.mark.parametrize("after", [0, 1, 4])
async def test_a_run_that_drops_is_lost_and_is_not_run_twice(relay: EventRelay, transport: str, after: int) -> None:
    url = relay.http if transport == "sse" else relay.ws
    async with Session.start("hello", url=url, retry=FAST) as session:
        await session.run()
        before = session.state["runs"]  # type: ignore[index]
        relay.cuts = [after]
        with pytest.raises(ConnectionLostError):
            await session.send_text("hello").run()
        await session.cancel()
        await session.send_text("hello").run()
        assert session.state["runs"] == before + 2  # type: ignore[index]


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_connection_that_was_never_made_is_tried_again(ports: dict[str, int], transport: str) -> None:
    failed = asyncio.Event()
    retry = Retry(initial_delay=0.02, max_delay=0.1, on_reconnect=lambda _: failed.set())
    async with relay_to(ports["agentcore"], listens=False) as relay:
        url = relay.http if transport == "sse" else relay.ws
        async with Session.start("hello", url=url, retry=retry) as session, asyncio.TaskGroup() as group:
            group.create_task(session.run())
            await failed.wait()
            await relay.listen()
        assert session.outcome is Outcome.SUCCESS
        assert relay.connections == 1


@pytest.mark.parametrize("name", ["strands", "pydantic_adapter"])
async def test_text_and_tools_of_both_sides_work(ports: dict[str, int], name: str) -> None:
    async with Session.start("say hello world", url=http(ports[name]), client_tools=[toss]) as session:
        await session.run()
        assert session.messages[-1].content == "helloworld"
        await session.send_text("use toss").run()
        assert session.messages[-1].content == "result: tossed 6"
        await session.send_text("count").run()
        assert session.messages[-1].content == "3 messages"


async def test_an_interrupt_of_strands_is_answered(ports: dict[str, int]) -> None:
    async with Session.start("use roll", url=http(ports["strands"])) as session:
        await session.run()
        assert session.outcome is Outcome.INTERRUPT
        (interrupt,) = session.interrupts
        assert interrupt.reason
        await session.run(on_approval=lambda approval: approval.approve(), on_interrupt=lambda _: {"approved": True})
        assert session.messages[-1].content == "result: rolled 6"
