"""Runs own themselves: a reader comes when it likes, as often as it likes, and a retry is just another reader."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item
from tests.behaviour.client import Refused, types
from tests.conftest import Connect
from tests.engine.doubles import agent_of, ask


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
