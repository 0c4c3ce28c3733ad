"""Restarts: interrupts of one server are answered by another one on the same store."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agui_container.main import build_service
from agui_container.ports.records import InterruptScope
from agui_container.settings import Settings
from tests.behaviour.approval_tools import PAID, POLICY, TOOLS
from tests.behaviour.client import Client, outcome
from tests.behaviour.conversations import PAINT, ClientThread, answer, calls, interrupts, results
from tests.behaviour.fake_models import FakeOffline
from tests.behaviour.goals import NOTE, SUM, custom_values, goal_statuses, goals
from tests.behaviour.inprocess import InProcess
from tests.behaviour.subagents import paid, parts, team
from tests.engine.doubles import FakeClock, ask
from tests.requirements import requirement

Begin = Callable[[], Awaitable[Client]]
"""A server on the test's store, as another process would begin it."""

mates = team()


@asynccontextmanager
async def server(settings: Settings) -> AsyncIterator[Client]:
    service = build_service(settings)
    await service.open()
    try:
        yield InProcess(service, FakeClock(), by_session=False)
    finally:
        await service.drain(0)
        await service.aclose()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def settings(store: str) -> Settings:
    """Settings of the assistant with the tools of the fixture."""
    return Settings.model_validate({"store": store, "tools": TOOLS, "tool_policy": POLICY})


@pytest.fixture
async def begin(settings: Settings) -> AsyncIterator[Begin]:
    """Servers beside each other."""
    async with AsyncExitStack() as stack:
        yield lambda: stack.enter_async_context(server(settings))


@requirement("approval.restart")
async def test_a_call_that_waits_when_the_process_ends_is_answered_in_the_next_one(settings: Settings) -> None:
    async with server(settings) as client:
        talk = ClientThread(client, FakeOffline())
        (interrupt,) = interrupts(await talk.say('call pay {"amount": 5}'))
    async with server(settings) as talk.client:
        assert interrupts(await talk.say("anybody there?")) == [interrupt]
        assert PAID[talk.thread] == []
        events = await talk.resume(answer(interrupt, approved=True))
        assert (results(events), PAID[talk.thread]) == (["paid 5"], [5])
    async with server(settings) as talk.client:
        talk.messages = talk.messages[:2]
        assert results(await talk.resume(answer(interrupt, approved=True))) == ["paid 5"]
    assert PAID[talk.thread] == [5]


@requirement("approval.replica")
async def test_a_call_is_asked_for_by_one_replica_and_answered_through_another_once(begin: Begin) -> None:
    one, other = await begin(), await begin()
    talk = ClientThread(one, FakeOffline())
    (interrupt,) = interrupts(await talk.say('call pay {"amount": 5}'))
    talk.client = other
    assert results(await talk.resume(answer(interrupt, approved=True))) == ["paid 5"]
    talk.client = one
    await talk.resume(answer(interrupt, approved=True))
    assert PAID[talk.thread] == [5]


@requirement("sub.restart")
@pytest.mark.parametrize("said", ["delegate {}", "delegate delegate {}"])
async def test_a_subagent_that_waits_when_the_process_ends_goes_on_in_the_next_one(
    settings: Settings, said: str
) -> None:
    async with server(settings) as client:
        talk = ClientThread(client, FakeOffline())
        (interrupt,) = interrupts(await talk.say(said.format('call pay {"amount": 5}')))
    async with server(settings) as talk.client:
        events = await talk.resume(answer(interrupt, approved=True))
    assert [amounts for thread, amounts in PAID.items() if thread.startswith(f"{talk.thread}/")] == [[5]]
    assert (outcome(events), results(events)[0]) == ("success", "paid 5")


@requirement("approval.own")
async def test_an_assistant_of_ones_own_keeps_what_waits_in_the_servers_store(store: str) -> None:
    settings = Settings.model_validate({"store": store, "agent": f"{__name__}:mates"})
    paid.clear()
    async with server(settings) as client:
        talk = ClientThread(client, FakeOffline())
        both = 'delegate call pay {"amount": 1}\ncall pay {"amount": 2}'
        yes = [answer(interrupt, approved=True) for interrupt in interrupts(await talk.say(both))]
    async with server(settings) as talk.client:
        assert outcome(await talk.resume(*yes)) == "success"
    assert sorted(paid) == [1, 2]


@requirement("thread.delete")
async def test_interrupts_of_subagents_are_deleted_with_the_clients_thread(store: str) -> None:
    async with server(Settings.model_validate({"store": store, "agent": f"{__name__}:mates"})) as client:
        events = await client.run(ask(text='delegate call pay {"amount": 1}'))
        [part], waiting = parts(events), client.service.cluster.store.interrupts
        places = [InterruptScope(0, "everybody", "t1"), InterruptScope(1, "everybody", "t1", f"t1/{part}")]
        assert [len(await waiting.list_open(place, 0.0)) for place in places] == [1, 1]
        await client.command({"command": {"type": "threads.delete", "threadId": "t1"}})
        assert [len(await waiting.list_open(place, 0.0)) for place in places] == [0, 0]


@requirement("goal.restart")
async def test_the_goals_of_a_turn_are_those_of_the_next_process(settings: Settings) -> None:
    async with server(settings) as client:
        talk = ClientThread(client, FakeOffline(), tools=[PAINT])
        events = await talk.say("call paint {}\ncall achieve_note {}", forwardedProps=goals(NOTE, SUM))
        talk.result(calls(events)["paint"], "dry")
    async with server(settings) as talk.client:
        events = await talk.say('call achieve_sum {"amount": 3}')
        (declared,) = custom_values(events, "goals.declared")
        assert [row["status"] for row in declared["goals"]] == ["achieved", "pending"]
        assert goal_statuses(events) == {"note": "achieved", "sum": "achieved"}
    async with server(settings) as talk.client:
        assert goal_statuses(await talk.say("stream 1")) == {}


@requirement("goal.restart")
@pytest.mark.parametrize("said", ["stream 1", "fail", "call paint {}\ncall achieve_note {}"])
async def test_the_status_of_goals_can_be_read_as_soon_as_the_run_is_over(settings: Settings, said: str) -> None:
    async with server(settings) as client:
        talk = ClientThread(client, FakeOffline(), tools=[PAINT])
        told_last = goal_statuses(await talk.say(said, forwardedProps=goals(NOTE, SUM)))
        thread = await client.command({"command": {"type": "threads.get", "threadId": talk.thread}})
        assert {goal["type"]: goal["status"] for goal in thread["goals"]} == told_last
