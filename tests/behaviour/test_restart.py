"""Restarts: interrupts of one server are answered by another one on the same store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from ag_ui.core import RunAgentInput

from agui_container import RunContext
from agui_container.conversation.questions import journal_kind
from agui_container.main import build_service
from agui_container.ports import Item
from agui_container.ports.records import ThreadKey
from agui_container.settings import Settings
from tests.behaviour.approval_tools import PAID, POLICY, TOOLS
from tests.behaviour.client import Client, outcome
from tests.behaviour.conversations import ClientThread, answer, interrupts, results
from tests.behaviour.inprocess import InProcess
from tests.behaviour.subagents import paid, parts, team
from tests.engine.doubles import FakeClock, ask

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
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def settings(store: str) -> Settings:
    return Settings.model_validate({"store": store, "tools": TOOLS, "tool_policy": POLICY})


PAYER = f"{__name__}:payer"
PAY = {"tools": TOOLS, "tool_policy": POLICY}


async def payer(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    yield str(await ctx.call_tool("pay", {"amount": 5}))


@pytest.mark.parametrize(
    "served",
    [
        pytest.param(PAY, id="assistant"),
        pytest.param({**PAY, "agent": PAYER}, id="function"),
        pytest.param({**PAY, "agents": [f"payer={PAYER}", "helper=assistant"]}, id="several"),
        pytest.param(
            {
                "tools": "tests.agents.turns:tools",
                "tool_policy": '[{"tool_pattern": "pay", "policy": "ask"}]',
                "agent": "tests.agents.frameworks.langgraph_agents:calling",
            },
            marks=pytest.mark.packages,
            id="framework",
        ),
    ],
)
async def test_what_waits_is_shown_after_a_restart(store: str, served: dict[str, object]) -> None:
    settings = Settings.model_validate({"store": store, **served})
    said = "pay 5" if "langgraph" in str(served) else 'call pay {"amount": 5}'
    async with server(settings) as client:
        asked = interrupts(await client.run(ask(text=said)))
        assert len(asked) == 1
    async with server(settings) as client:
        command = {"command": {"type": "threads.get", "threadId": "t1"}}
        assert (await client.command(command))["waiting"] == asked
        assert interrupts(await client.run(ask(run="r2", messages=[]))) == asked


@pytest.mark.parametrize("said", ["delegate {}", "delegate delegate {}"])
async def test_a_subagent_that_waits_when_the_process_ends_goes_on_in_the_next_one(
    settings: Settings, said: str
) -> None:
    async with server(settings) as client:
        thread = ClientThread(client)
        (interrupt,) = interrupts(await thread.say(said.format('call pay {"amount": 5}')))
    async with server(settings) as thread.client:
        events = await thread.resume(answer(interrupt, approved=True))
    assert [amounts for key, amounts in PAID.items() if key.startswith(f"{thread.id}/")] == [[5]]
    assert (outcome(events), results(events)[0]) == ("success", "paid 5")


async def test_an_assistant_of_ones_own_keeps_what_waits_in_the_servers_store(store: str) -> None:
    settings = Settings.model_validate({"store": store, "agent": f"{__name__}:mates"})
    paid.clear()
    async with server(settings) as client:
        thread = ClientThread(client)
        both = 'delegate call pay {"amount": 1}\ncall pay {"amount": 2}'
        yes = [answer(interrupt, approved=True) for interrupt in interrupts(await thread.say(both))]
    async with server(settings) as thread.client:
        assert outcome(await thread.resume(*yes)) == "success"
    assert sorted(paid) == [1, 2]


async def test_interrupts_of_subagents_are_deleted_with_the_clients_thread(store: str) -> None:
    async with server(Settings.model_validate({"store": store, "agent": f"{__name__}:mates"})) as client:
        events = await client.run(ask(text='delegate call pay {"amount": 1}'))
        [part], stored, thread = parts(events), client.service.cluster.store, ThreadKey("everybody", "t1")
        kinds = [journal_kind(0, ""), journal_kind(1, f"t1/{part}")]
        assert [len(await stored.notes(thread, kind)) for kind in kinds] == [1, 1]
        await client.command({"command": {"type": "threads.delete", "threadId": "t1"}})
        assert list(await stored.notes(thread, *kinds)) == []
