"""Events of a run as an HTTP response: pushed to the connection, or sent in the response's own task."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import pytest
from ag_ui.core import CustomEvent, RunAgentInput
from fastapi import FastAPI

from agui_container.engine.engine import Engine
from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.settings import Settings
from agui_container.web.event_stream import LAST_BYTES
from tests.engine.doubles import agent_of, caller, eventually, make_service
from tests.web.exchange import AsgiExchange, sequence_numbers

TOKEN = b'"delta":"word'
EVENTS = list(range(1, 25))
"""The numbers of the events of ``paced_agent``: 20 tokens, and begin and end of the run and of its message."""


async def paced_agent(_: RunAgentInput) -> AsyncIterator[Item]:
    for _number in range(20):
        yield "word "
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def paced_after(has_begun: asyncio.Event) -> Callable[[RunAgentInput], AsyncIterator[Item]]:
    """Return an agent that waits, so that RUN_STARTED leaves in a write of its own."""

    async def agent(run_input: RunAgentInput) -> AsyncIterator[Item]:
        await has_begun.wait()
        async for item in paced_agent(run_input):
            yield item

    return agent


async def application(agent: object = paced_agent) -> tuple[FastAPI, Engine]:
    service = make_service(agent)
    await service.open()
    return build_app(Settings(), service), service


async def run_status(service: Engine) -> str:
    run = service.runs.find_local(caller(), "t1", "r1")
    assert run is not None
    await eventually(lambda: run.log.has_ended)
    return run.status


@pytest.mark.parametrize("seed", range(4))
async def test_the_frames_are_the_run_in_order_under_any_backpressure(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - as above

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(200):
            yield CustomEvent(name="n", value=number)
            for _turn in range(dice.choice((0, 0, 0, 1, 2, 5))):
                await asyncio.sleep(0)

    async def wait_for_room(_: bytes) -> None:
        for _turn in range(dice.choice((0, 0, 1, 3, 10))):
            room = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(room.set_result, None)
            await room

    app, _ = await application(agent)
    exchange = AsgiExchange(wait_for_room, takes=(lambda _: dice.random() < 0.7) if seed % 2 else None)
    await exchange.answer(app)
    assert sequence_numbers(exchange.bodies) == list(range(1, 203))


@pytest.mark.parametrize(("size", "separate_end"), [(1, False), (LAST_BYTES, True)])
async def test_the_end_leaves_together_with_the_last_events_if_they_are_small(size: int, separate_end: bool) -> None:  # noqa: FBT001 - a parameter
    app, _ = await application(agent_of(CustomEvent(name="n", value="x" * size)))
    exchange = AsgiExchange()
    await exchange.answer(app)
    assert b"RUN_FINISHED" in exchange.bodies[-1]
    assert (exchange.messages[-1]["body"] == b"") is separate_end
    assert [message["more_body"] for message in exchange.messages[1:]] == [True] * (len(exchange.messages) - 2) + [
        False
    ]


async def test_a_connection_that_raises_ends_the_stream_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    has_begun = asyncio.Event()

    def fail(body: bytes) -> bool:
        has_begun.set()
        if TOKEN in body:
            raise RuntimeError("the transport is gone")
        return True

    async def fail_too(body: bytes) -> None:
        fail(body)

    app, service = await application(paced_after(has_begun))
    exchange = AsgiExchange(fail_too, takes=fail)
    with pytest.raises(RuntimeError, match="the transport is gone"):
        await exchange.answer(app)
    assert sequence_numbers(exchange.bodies) == [1]
    assert await run_status(service) == "finished"
    assert "flush" not in caplog.text
