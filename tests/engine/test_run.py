"""Runs of agents that resist cancellation, fail in their cleanup or send events late, and the log lines about them."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from ag_ui.core import (
    CustomEvent,
    RunAgentInput,
)

from agui_container.engine.engine import Engine
from agui_container.engine.limits import CapacityLimits
from agui_container.ports import Item
from agui_container.protocol.encoder import MAX_EVENT_BYTES
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.fairness import BURST, FairScheduler
from tests.engine.doubles import (
    WAIT,
    asking,
    caller,
    envelopes,
    eventually,
    make_service,
)


def names(log: list[Envelope]) -> list[str]:
    return [envelope.type.value for envelope in log]


async def log_of(agent: object, **limits: int) -> list[Envelope]:
    """Execute a run and return its log."""
    return await envelopes(await make_service(agent, limits=CapacityLimits(**limits)).admit(asking(), caller()))


async def wait_until_idle(service: Engine) -> None:
    """Wait until no run and no task is left."""
    await eventually(lambda: not service.registry.tasks)


async def test_an_error_that_no_event_can_hold_fails_the_run_with_another(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        raise AppError(ErrorCode.MODEL_ERROR, "x" * (MAX_EVENT_BYTES + 1))

    log = await log_of(agent)
    assert names(log)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert b'"code":"AGENT_ERROR"' in log[-1].data
    assert "run could not end in order" in caplog.text


async def test_a_tight_agent_lets_others_run() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(2_000):
            yield CustomEvent(name="n", value=number)

    service = make_service(agent)
    reader = await service.admit(asking(), caller())
    seen = [0]
    while not reader.run.log.has_ended:
        await asyncio.sleep(0)
        seen.append(len(reader.run.log))
    assert max(later - earlier for earlier, later in pairwise(seen)) <= BURST + 2
    assert len(seen) > 2_000 // BURST


# --- turns ------------------------------------------------------------------------------------------------------------


async def test_one_run_continues_per_turn_of_the_loop_however_many_wait() -> None:
    scheduler, continued = FairScheduler(), list[int]()

    async def one(number: int) -> None:
        await scheduler.yield_turn(number)
        continued.append(number)

    cancelled, *others = (asyncio.create_task(one(number)) for number in range(4))
    await asyncio.sleep(0)
    cancelled.cancel()
    steps = [0]
    async with asyncio.timeout(WAIT):
        while not all(task.done() for task in others):
            await asyncio.sleep(0)
            steps.append(len(continued))
    assert continued == [1, 2, 3]
    assert max(later - earlier for earlier, later in pairwise(steps)) == 1
