"""A timer that is late while runs are open is logged; an idle process, which may be frozen, has no timer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.engine import Engine
from agui_container.engine.health import INTERVAL_SECONDS, LoopMonitor
from agui_container.ports import Item
from tests.engine.doubles import asking, caller, cancel_run, envelopes, eventually, forever, make_service


class Machine:
    """The time of a process, which the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reads = 0

    def monotonic(self) -> float:
        self.reads += 1
        return self.now


@asynccontextmanager
async def monitored(service: Engine, machine: Machine) -> AsyncIterator[None]:
    """Monitor a service for the block, and end it then."""
    monitor = asyncio.create_task(LoopMonitor(service.health, service.registry.open_run_ids, machine.monotonic).run())
    yield
    monitor.cancel()
    await asyncio.wait([monitor])
    await service.drain(0)


@pytest.mark.parametrize(("delay", "is_logged"), [(0.0, False), (0.4, False), (0.75, True), (61.0, True)])
async def test_a_late_timer_is_logged(caplog: pytest.LogCaptureFixture, delay: float, *, is_logged: bool) -> None:
    service, machine = make_service(forever), Machine()
    async with monitored(service, machine):
        for number in range(7):
            await service.admit(asking(f"t{number}", f"r{number}"), caller())
        await eventually(lambda: machine.reads)
        machine.now += INTERVAL_SECONDS + delay
        reads = machine.reads
        await eventually(lambda: machine.reads > reads + 1)
        lines = [f"event loop blocked seconds={delay:.1f} open_runs=7 runs=r0,r1,r2,r3,r4"] if is_logged else []
        assert caplog.messages == lines


async def test_an_idle_process_that_was_frozen_has_no_blocked_loop(caplog: pytest.LogCaptureFixture) -> None:
    service, machine = make_service(forever), Machine()
    async with monitored(service, machine):
        reader = await service.admit(asking(), caller())
        await eventually(lambda: machine.reads)
        cancel_run(service, reader)
        await eventually(lambda: not service.health.is_busy)
        for _ in range(5):
            await asyncio.sleep(0)
        machine.now += 61.0
        await service.admit(asking("t2", "r2"), caller())
        reads = machine.reads
        await eventually(lambda: machine.reads > reads + 1)
    assert caplog.messages == []


async def test_a_run_that_ended_while_the_loop_was_blocked_is_named(caplog: pytest.LogCaptureFixture) -> None:
    may_end, machine = asyncio.Event(), Machine()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hello"
        await may_end.wait()
        machine.now += INTERVAL_SECONDS + 2

    service = make_service(agent)
    async with monitored(service, machine):
        reader = await service.admit(asking(), caller())
        await eventually(lambda: machine.reads)
        may_end.set()
        await envelopes(reader)
        await eventually(lambda: caplog.messages)
    assert caplog.messages == ["event loop blocked seconds=2.0 open_runs=0 runs=r1"]


async def test_an_idle_process_is_not_woken() -> None:
    service, machine = make_service(forever), Machine()
    async with monitored(service, machine):
        for _ in range(10):
            await asyncio.sleep(0)
    assert machine.reads == 0
