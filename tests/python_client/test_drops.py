"""Connections that drop: nothing is lost, nothing is doubled, and nothing runs twice."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from ag_ui.core import BaseEvent, EventType, TextMessageContentEvent

from agui_client import (
    AgentClientError,
    ConnectionLostError,
    Outcome,
    Reconnect,
    Retry,
    RunFailedError,
    RunRefusedError,
    Session,
    SessionStatus,
)
from tests.python_client.conftest import TRANSPORTS
from tests.python_client.relay import EventRelay, relay_to
from tests.sockets.process import ServerProcess

QUESTION = "think about a\u2028b\u2029c\u0085d"
"""Its answer has separators that end a line for Python, and not for Server-Sent Events."""

ANSWER = "I have thought about a\u2028b\u2029c\u0085d."
FAST = Retry(initial_delay=0.02, max_delay=0.1)


@pytest.fixture
async def relay(server: ServerProcess) -> AsyncIterator[EventRelay]:
    """A relay to the server."""
    async with relay_to(server.port) as relay:
        yield relay


@pytest.fixture(params=TRANSPORTS)
def relayed(request: pytest.FixtureRequest, relay: EventRelay) -> str:
    """The URL of the server behind the relay, over each transport."""
    return relay.http if request.param == "sse" else relay.ws


def seen(events: list[BaseEvent]) -> list[tuple[str, str]]:
    """Types and texts of events. Adjacent deltas are one, because a socket may merge them."""
    shown: list[tuple[str, str]] = []
    for event in events:
        text = str(getattr(event, "delta", ""))
        if shown and shown[-1][0] == event.type.value and text:
            text = shown.pop()[1] + text
        shown.append((event.type.value, text))
    return shown


async def read(url: str, text: str = QUESTION, retry: Retry = FAST) -> tuple[Session, list[BaseEvent]]:
    """Return the events of one run, and how often the server has run something on its thread."""
    async with Session.start(text, url=url, retry=retry) as session:
        events = [event async for event in session.events()]
        thread = await session.command("threads.get", threadId=session.thread_id)
    assert [each["role"] for each in thread["messages"]].count("user") == 1  # type: ignore[attr-defined]
    return session, events


async def runs_of(session: Session) -> int:
    """Count the runs of a session's thread."""
    listed = (await session.command("runs.list"))["runs"]
    return sum(run["threadId"] == session.thread_id for run in listed)  # type: ignore[attr-defined]


@pytest.mark.parametrize("within", [0, 20], ids=["between events", "within an event"])
async def test_a_drop_at_any_event_loses_and_doubles_nothing(relay: EventRelay, relayed: str, within: int) -> None:
    _, whole = await read(relayed)
    assert len(whole) > 8
    for after in range(len(whole)):
        relay.cuts, relay.within = [after], within
        session, events = await read(relayed)
        assert relay.cuts == []
        assert seen(events) == seen(whole), f"after {after} events"
        assert session.messages[-1].content == ANSWER
        assert await runs_of(session) == 1
        await session.aclose()


async def test_a_run_ends_though_each_connection_brings_one_event(relay: EventRelay, relayed: str) -> None:
    _, whole = await read(relayed)
    relay.cuts = [1] * (len(whole) - 1)
    session, events = await read(relayed)
    assert seen(events) == seen(whole)
    assert await runs_of(session) == 1
    await session.aclose()


async def test_an_input_that_is_lost_three_times_is_run_once(relay: EventRelay, relayed: str) -> None:
    relay.cuts = [0, 0, 0]
    session, _ = await read(relayed)
    assert session.messages[-1].content == ANSWER
    assert await runs_of(session) == 1
    await session.aclose()


async def test_the_pauses_between_attempts_grow_until_the_client_gives_up(relay: EventRelay, relayed: str) -> None:
    pauses: list[Reconnect] = []
    relay.refuses = 1_000
    retry = Retry(initial_delay=0.02, max_delay=10, give_up_after=0.1, on_reconnect=pauses.append)
    with pytest.raises(ConnectionLostError) as caught:
        await read(relayed, retry=retry)
    assert caught.value.attempts == len(pauses) + 1
    assert caught.value.__cause__ is not None
    for index, pause in enumerate(pauses):
        assert pause.attempt == index + 1
        assert 0.01 * 2**index <= pause.delay <= 0.02 * 2**index


async def test_a_server_that_comes_back_is_waited_for(relay: EventRelay, relayed: str) -> None:
    attempts: list[int] = []

    def come_back(reconnect: Reconnect) -> None:
        attempts.append(reconnect.attempt)
        relay.refuses = 1 if reconnect.attempt < 3 else 0

    relay.refuses = 1
    session, _ = await read(relayed, retry=Retry(initial_delay=0.02, on_reconnect=come_back))
    assert session.messages[-1].content == ANSWER
    assert attempts == [1, 2, 3]


async def test_a_reading_that_is_left_continues_after_its_last_event(relay: EventRelay, relayed: str) -> None:
    _, whole = await read(relayed)
    events: list[BaseEvent] = []
    async with Session.start(QUESTION, url=relayed) as session:
        while session.outcome is None:
            async for event in session.events():
                events.append(event)
                break
    assert seen(events) == seen(whole)


async def test_a_cancel_reaches_the_server_though_the_connection_drops(relay: EventRelay, relayed: str) -> None:
    async with Session.start("wait 600", url=relayed, retry=FAST) as session:

        async def stop(event: BaseEvent) -> None:
            if isinstance(event, TextMessageContentEvent):
                relay.cut_all()
                await session.cancel()

        await session.run(on_event=stop)
        assert session.outcome is Outcome.CANCELLED


async def test_an_input_that_never_arrived_needs_no_cancel(relay: EventRelay, relayed: str) -> None:
    async with Session.start("wait 600", url=relayed, retry=Retry(initial_delay=0.02, give_up_after=0)) as session:
        await session.capabilities()
        await session.aclose()
        relay.refuses = 1
        with pytest.raises(ConnectionLostError):
            await session.run()
        await session.cancel()
        assert (session.outcome, session.status) == (Outcome.CANCELLED, SessionStatus.USER_TURN)


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    """Each transport."""
    chosen: str = request.param
    return chosen


Start = Callable[..., ServerProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a server, which ends with the test."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(ServerProcess(AGUI_AGENT="assistant", **settings))


async def run_over_a_restart(start: Start, transport: str, **settings: str) -> list[BaseEvent]:
    """Kill a server at the first word of a run, and start another one in its place. Return the events of the run."""
    events: list[BaseEvent] = []
    first = start(**settings)
    async with relay_to(first.port) as relay:

        def restart(event: BaseEvent) -> None:
            events.append(event)
            if isinstance(event, TextMessageContentEvent) and first.running:
                first.kill()
                relay.send_to(start(**settings).port)

        async with Session.start("wait 600", url=relay.http if transport == "sse" else relay.ws, retry=FAST) as session:
            with pytest.raises(AgentClientError) as caught:
                await session.run(on_event=restart)
            assert isinstance(caught.value, RunFailedError | RunRefusedError)
            assert caught.value.code in {"RUN_LOST", "RUN_NOT_FOUND"}
            await session.send_text("calculate 6*7").run()
            assert session.messages[-1].content == "The result of calculate is 42."
    return events


async def test_a_server_that_restarts_has_the_end_of_the_run(start: Start, tmp_path: Path, transport: str) -> None:
    events = await run_over_a_restart(start, transport, AGUI_STORE=f"sqlite:///{tmp_path}/runs.db")
    assert [event.type for event in events].count(EventType.RUN_STARTED) == 1
    assert events[-1].type is EventType.RUN_ERROR


async def test_a_run_that_a_restarted_server_has_lost_is_refused(start: Start, transport: str) -> None:
    events = await run_over_a_restart(start, transport)
    assert isinstance(events[-1], TextMessageContentEvent)
