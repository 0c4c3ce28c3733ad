"""Runs own themselves: a reader comes when it likes, as often as it likes, and a retry is just another reader."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item
from tests.behaviour.client import Client, Refused, text, types
from tests.conftest import Connect
from tests.engine.doubles import Json, agent_of, ask, caller, cancel_run, envelopes, eventually, forever
from tests.engine.replicas import Replicas


class Steps:
    """An agent that yields one numbered event for each ``let``, and returns after ``finish``."""

    def __init__(self) -> None:
        self.started = 0
        self._go = asyncio.Queue[str]()

    def let(self, count: int = 1) -> None:
        for _ in range(count):
            self._go.put_nowait("go on")

    def finish(self) -> None:
        self._go.put_nowait("")

    async def run(self, _: RunAgentInput) -> AsyncIterator[Item]:
        self.started += 1
        number = 0
        while await self._go.get():
            number += 1
            yield CustomEvent(name="step", value=number)


@pytest.mark.wire
async def test_a_second_reader_gets_what_was_and_what_comes(connect: Connect) -> None:
    steps = Steps()
    client = await connect(steps)
    first = await client.start(ask())
    steps.let(2)
    seen = [await first.until("CUSTOM"), await first.until("CUSTOM")]
    second = await client.attach("t1", "r1")
    replayed = [await second.next(), await second.next(), await second.next()]
    assert replayed[1:] == seen
    steps.let()
    assert await second.until("CUSTOM") == await first.until("CUSTOM") == {**seen[0], "value": 3}
    steps.finish()
    assert await first.rest() == await second.rest()
    assert first.seqs == second.seqs == [1, 2, 3, 4, 5]


@pytest.mark.wire
@pytest.mark.platform
@pytest.mark.parametrize("after", [0, 1, 3, 4])
async def test_attaching_after_begins_with_the_next(connect: Connect, after: int) -> None:
    steps = Steps()
    client = await connect(steps)
    first = await client.start(ask())
    steps.let(3)
    for _ in range(3):
        await first.until("CUSTOM")
    second = await client.attach("t1", "r1", after)
    steps.let()
    steps.finish()
    assert len(await second.rest()) == 6 - after
    assert second.seqs == list(range(after + 1, 7))


@pytest.mark.wire
async def test_a_cursor_ahead_of_the_run_is_refused(connect: Connect) -> None:
    steps = Steps()
    client = await connect(steps)
    await (await client.start(ask())).until("RUN_STARTED")
    with pytest.raises(Refused) as refused:
        await client.attach("t1", "r1", 2)
    assert refused.value.code == "VALIDATION_ERROR"
    assert "after" in refused.value.message


async def test_without_a_run_the_active_one_is_read_else_the_latest(connect: Connect) -> None:
    steps = Steps()
    client = await connect(steps, on_busy="enqueue")
    first = await client.start(ask(run="r1"))
    await first.until("RUN_STARTED")
    second = await client.start(ask(run="r2"))
    assert (await (await client.attach("t1", None)).until("RUN_STARTED"))["runId"] == "r1"
    steps.finish()
    steps.finish()
    await second.until("RUN_FINISHED")
    assert (await (await client.attach("t1", None)).until("RUN_STARTED"))["runId"] == "r2"


@pytest.mark.wire
@pytest.mark.parametrize(("thread", "run"), [("t1", "nobody"), ("nobody", "r1"), ("nobody", None), (None, None)])
async def test_attaching_to_what_is_not_there_is_refused(connect: Connect, thread: str | None, run: str | None) -> None:
    client = await connect(agent_of("hi"))
    await client.run(ask())
    with pytest.raises(Refused, match="RUN_NOT_FOUND"):
        await client.attach(thread, run)


async def test_an_attach_inside_an_input_follows_its_thread(connect: Connect) -> None:
    steps = Steps()
    client = await connect(steps)
    await (await client.start(ask())).until("RUN_STARTED")
    steps.let()
    stream = await client.start(ask(run="other", forwardedProps={"command": {"type": "attach"}}))
    steps.finish()
    events = await stream.rest()
    assert types(events) == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
    assert events[0]["runId"] == "r1"


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
