"""Retries: the ids of a run with the same messages join it, and with other messages they are refused."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput

from tests.behaviour.client import Client, Refused, text
from tests.conftest import Connect
from tests.engine.doubles import Json, ask, caller, cancel_run, envelopes, eventually, forever
from tests.engine.replicas import Replicas

OTHERS: dict[str, list[Json]] = {
    "another question": [{"id": "u2", "role": "user", "content": "and now?"}],
    "another question under the id of the first": [{"id": "u1", "role": "user", "content": "and now?"}],
    "a question more": [
        {"id": "u1", "role": "user", "content": "hi"},
        {"id": "a1", "role": "assistant", "content": "hello"},
        {"id": "u2", "role": "user", "content": "and now?"},
    ],
    "a result more": [
        {"id": "u1", "role": "user", "content": "hi"},
        {"id": "a1", "role": "assistant", "toolCalls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
        {"id": "t1", "role": "tool", "toolCallId": "c", "content": "done"},
    ],
}
SAME: dict[str, list[Json]] = {
    "the same messages": ask()["messages"],
    "the answer so far": [*ask()["messages"], {"id": "a1", "role": "assistant", "content": "hel"}],
    "fields that say nothing": [{**ask()["messages"][0], "name": None}],
    "no messages": [],
}


class Counted:
    def __init__(self) -> None:
        self.runs = 0
        self.may_end = asyncio.Event()

    async def run(self, _: RunAgentInput) -> AsyncIterator[str]:
        self.runs += 1
        yield f"run {self.runs}"
        await self.may_end.wait()


async def refusal(client: Client, messages: list[Json]) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        await client.start(ask(messages=messages))
    return caught.value.code, caught.value.message


REFUSAL = ("VALIDATION_ERROR", "runId: this run began with other messages. Send new messages with a new runId.")


@pytest.mark.wire
@pytest.mark.durable
@pytest.mark.parametrize("messages", OTHERS.values(), ids=OTHERS)
async def test_other_messages_under_the_ids_of_a_run_are_refused_before_and_after_its_end(
    connect: Connect, messages: list[Json]
) -> None:
    agent = Counted()
    client = await connect(agent)
    stream = await client.start(ask())
    assert await refusal(client, messages) == REFUSAL
    agent.may_end.set()
    assert text(await stream.rest()) == "run 1"
    await eventually(lambda: not client.service.registry.lives)
    assert await refusal(client, messages) == REFUSAL
    assert agent.runs == 1


@pytest.mark.wire
@pytest.mark.durable
@pytest.mark.parametrize("messages", SAME.values(), ids=SAME)
async def test_the_same_messages_join_the_run(connect: Connect, messages: list[Json]) -> None:
    agent = Counted()
    client = await connect(agent)
    first = await client.start(ask())
    second = await client.start(ask(messages=messages))
    agent.may_end.set()
    assert text(await second.rest()) == text(await first.rest()) == "run 1"
    await eventually(lambda: not client.service.registry.lives)
    assert text(await client.run(ask(messages=messages))) == "run 1"
    assert agent.runs == 1


async def test_a_run_of_another_replica_is_not_joined_with_other_messages() -> None:
    replicas = Replicas()
    here, there = [await replicas.start(forever) for _ in range(2)]
    reader = await here.admit(RunAgentInput.model_validate(ask()), caller())
    with pytest.raises(Exception, match="other messages"):
        await there.admit(RunAgentInput.model_validate(ask(text="and now?")), caller())
    joined = await there.admit(RunAgentInput.model_validate(ask()), caller())
    cancel_run(here, reader)
    assert [each.seq for each in await envelopes(joined)] == [1, 2]
    for service in (here, there):
        await service.drain(0)
