"""Each call of a turn is run once, whatever is asked for in it, and however and wherever it is answered."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from tests.agents.conftest import Serve
from tests.agents.turns import (
    AGENTS,
    EFFECTS,
    ORDERS,
    WAYS,
    Client,
    answer_all,
    answer_in_two_places,
    check,
)
from tests.agents.turns_of_models import CALLS, assistant, command

LONGEST = max(ORDERS, key=lambda name: len(ORDERS[name]))
ON_STORES = ("one by one",)
"""A store sees most runs when the answers come one by one. The longest order is answered in every way there, too."""


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
async def test_every_call_of_a_turn_is_run_once_however_it_is_answered(serve: Serve, kind: str, store: str) -> None:
    for name, steps, agent, message in turns_of(kind):
        server = (await serve(agent, store)).ask
        for way in WAYS if store == "memory" or name == LONGEST else ON_STORES:
            EFFECTS.clear()
            client = Client(server)
            await client.send(message)
            await answer_all(client, way)
            check((name, way), client, steps, way)


@pytest.mark.durable
@pytest.mark.parametrize("kind", ["in order", "gathered", "assistant in order", "assistant at once"])
async def test_every_call_of_a_turn_is_run_once_if_another_process_takes_each_answer(serve: Serve, kind: str) -> None:
    for name, steps, agent, message in turns_of(kind):
        EFFECTS.clear()
        client = await serve(agent, "sqlite")
        await client.send(message)
        await answer_all(client, "one by one", partial(serve, agent, "sqlite"))
        check(name, client, steps, "one by one")


@pytest.mark.parametrize("store", ["memory", *DURABLE])
@pytest.mark.parametrize("kind", ["in order", "gathered", "assistant at once"])
async def test_every_call_of_a_turn_is_run_once_if_two_tabs_or_replicas_decide_one_each(
    serve: Serve, kind: str, store: str
) -> None:
    for name, steps, agent, message in turns_of(kind):
        EFFECTS.clear()
        server = (await serve(agent, store)).ask
        tab = Client(server)
        other = Client(server if store == "memory" else (await serve(agent, store)).ask, tab.thread_id)
        await tab.send(message)
        await answer_in_two_places([tab, other])
        tab.questions |= other.questions
        check(name, tab, steps, "together")
