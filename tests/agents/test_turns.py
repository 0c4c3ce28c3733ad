"""Each call of a turn is run once, whatever is asked for in it, and however and wherever it is answered."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from agui_container.engine import admission
from agui_container.main import build_service
from agui_container.replicas import leases
from agui_container.settings import Settings
from tests.agents.turns import (
    AGENTS,
    EFFECTS,
    ORDERS,
    POLICY,
    WAYS,
    Ask,
    Client,
    answer_all,
    answer_in_two_places,
    asks,
    expected_effects,
    expected_questions,
)
from tests.agents.turns_of_models import CALLS, assistant, command
from tests.models.bedrock.doubles import as_nobody
from tests.stores.agentcore.server import memory_service

TOOLS = "tests.agents.turns:tools"

LONGEST = max(ORDERS, key=lambda name: len(ORDERS[name]))
ON_STORES = ("one by one",)
"""A store sees most runs when the answers come one by one. The longest order is answered in every way there, too."""


class Open(Protocol):
    """Serve an agent on a store. A second call is another process on that store."""

    async def __call__(self, agent: object, store: str = "memory") -> Ask: ...


@pytest.fixture
async def open_server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Open]:
    EFFECTS.clear()
    for module in (
        admission,
        leases,
    ):  # a slow machine must not let one process of a test take over the runs of another
        monkeypatch.setattr(module, "LEASE_SECONDS", 600.0)
    async with AsyncExitStack() as stack:

        async def open_server(agent: object, store: str = "memory") -> Ask:
            url = store
            if store == "sqlite":
                url = f"sqlite:///{tmp_path / 'turns.db'}"
            elif store == "postgres":
                url = request.getfixturevalue("postgres_url")
            elif store == "agentcore":
                as_nobody(monkeypatch)
                memory = await stack.enter_async_context(memory_service())
                monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", memory.url)
                url = "agentcore-memory:chats-0123456789"
            own = {} if agent is ASSISTANT else {"tools": TOOLS, "tool_policy": POLICY}
            service = build_service(Settings(agent="agent", store=url, **own), agent)
            await service.open()
            stack.push_async_callback(service.aclose)
            stack.push_async_callback(service.drain, 0)
            return asks(service)

        yield open_server


ASSISTANT = assistant()

KINDS = [*AGENTS, "assistant in order", "assistant at once"]


def turns_of(kind: str) -> Iterator[tuple[str, Sequence[str], object, str]]:
    """Yield the name of each order, its steps, the agent that takes them, and the message that begins the turn."""
    if kind in AGENTS:
        make: Callable[[Sequence[str]], object] = AGENTS[kind]
        yield from ((name, steps, make(steps), "go") for name, steps in ORDERS.items())
    else:
        is_gathered = kind == "assistant at once"
        yield from ((name, steps, ASSISTANT, command(steps, is_gathered=is_gathered)) for name, steps in CALLS.items())


def check(case: object, client: Client, steps: Sequence[str], way: str) -> None:
    assert (case, client.outcome) == (case, "success")
    assert (case, sorted(EFFECTS)) == (case, expected_effects(steps, way))
    assert (case, len(client.questions)) == (case, expected_questions(steps))


DURABLE = [
    pytest.param("sqlite", marks=pytest.mark.durable),
    pytest.param("postgres", marks=pytest.mark.services),
]


@pytest.mark.parametrize(
    ("kind", "store"),
    [
        *((kind, "memory") for kind in KINDS),
        *(
            pytest.param(kind, store.values[0], marks=store.marks)
            for kind in ("in order", "gathered", "assistant at once")
            for store in DURABLE
        ),
        pytest.param("gathered", "agentcore", marks=pytest.mark.wire),
        pytest.param("assistant at once", "agentcore", marks=pytest.mark.wire),
    ],
)
async def test_every_call_of_a_turn_is_run_once_however_it_is_answered(
    open_server: Open, kind: str, store: str
) -> None:
    for name, steps, agent, message in turns_of(kind):
        server = await open_server(agent, store)
        for way in WAYS if store == "memory" or name == LONGEST else ON_STORES:
            EFFECTS.clear()
            client = Client(server)
            await client.send(message)
            await answer_all(client, way)
            check((name, way), client, steps, way)


@pytest.mark.durable
@pytest.mark.parametrize("kind", ["in order", "gathered", "assistant in order", "assistant at once"])
async def test_every_call_of_a_turn_is_run_once_if_another_process_takes_each_answer(
    open_server: Open, kind: str
) -> None:
    for name, steps, agent, message in turns_of(kind):
        EFFECTS.clear()
        client = Client(await open_server(agent, "sqlite"))
        await client.send(message)
        await answer_all(client, "one by one", partial(open_server, agent, "sqlite"))
        check(name, client, steps, "one by one")


@pytest.mark.parametrize("store", ["memory", *DURABLE])
@pytest.mark.parametrize("kind", ["in order", "gathered", "assistant at once"])
async def test_every_call_of_a_turn_is_run_once_if_two_tabs_or_replicas_decide_one_each(
    open_server: Open, kind: str, store: str
) -> None:
    for name, steps, agent, message in turns_of(kind):
        EFFECTS.clear()
        server = await open_server(agent, store)
        tab = Client(server)
        other = Client(server if store == "memory" else await open_server(agent, store), tab.thread_id)
        await tab.send(message)
        await answer_in_two_places([tab, other])
        tab.questions |= other.questions
        check(name, tab, steps, "together")
