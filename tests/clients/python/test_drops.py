"""Connections that drop: nothing is lost, nothing is doubled, and nothing runs twice."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import BaseEvent, TextMessageContentEvent

from agui_client import ConnectionLostError, Outcome, Reconnect, Retry, Session
from tests.clients.python.conftest import TRANSPORTS
from tests.relay import EventRelay, relay_to
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]

QUESTION = "think about a\u2028b\u2029c\u0085d"
"""Its answer has separators that end a line for Python, and not for Server-Sent Events."""

ANSWER = "I have thought about a\u2028b\u2029c\u0085d."
FAST = Retry(initial_delay=0.02, max_delay=0.1)


@pytest.fixture
async def relay(server: ServerProcess) -> AsyncIterator[EventRelay]:
    async with relay_to(server.port) as relay:
        yield relay


@pytest.fixture(params=TRANSPORTS)
def relayed(request: pytest.FixtureRequest, relay: EventRelay) -> str:
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
    async with Session.start(text, url=url, retry=retry) as session:
        events = [event async for event in session.events()]
        thread = await session.command("threads.get", threadId=session.thread_id)
    assert [each["role"] for each in thread["messages"]].count("user") == 1  # type: ignore[attr-defined]
    return session, events


async def runs_of(session: Session) -> int:
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
