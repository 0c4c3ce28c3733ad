"""A timer that is late while runs are open is logged, unless the process was frozen; an idle process has no timer."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine import loop_monitor
from agui_container.engine.clocks import STEP_SECONDS, AwakeClock
from agui_container.engine.engine import Engine
from agui_container.engine.loop_monitor import BLOCKED_SECONDS, INTERVAL_SECONDS, LoopMonitor
from agui_container.ports import Item
from tests.engine.doubles import asking, caller, envelopes, eventually, forever, make_service


class Machine:
    """Time and processor of a process, which the test moves. ``clock`` has them."""

    def __init__(self) -> None:
        self.now = self.computed = 0.0
        self.reads = 0
        self.clock = AwakeClock(self._read_time, lambda: self.computed)

    def _read_time(self) -> float:
        self.reads += threading.current_thread() is threading.main_thread()
        return self.now

    def wait(self, seconds: float) -> None:
        """Wait in one call, while the other threads continue."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + STEP_SECONDS)
            self.clock.read()

    def compute(self, seconds: float) -> None:
        """Compute without letting another thread run."""
        self.computed += seconds
        self.now += seconds

    def freeze(self, seconds: float) -> None:
        """Be frozen by the platform."""
        self.now += seconds


@asynccontextmanager
async def monitored(service: Engine, machine: Machine) -> AsyncIterator[None]:
    """Monitor a service for the block, and end it then."""
    monitor = asyncio.create_task(LoopMonitor(service.health, service.registry, machine.clock).run())
    yield
    monitor.cancel()
    await asyncio.wait([monitor])
    await service.drain(0)


async def blocked_for(machine: Machine, block: str, seconds: float) -> None:
    """Block the loop for seconds in a way of the machine's, and wait until the monitor has measured."""
    await eventually(lambda: machine.reads)
    getattr(machine, block)(seconds)
    reads = machine.reads
    await eventually(lambda: machine.reads > reads + 1)


@pytest.mark.parametrize("block", ["wait", "compute"])
@pytest.mark.parametrize(("delay", "is_logged"), [(0.0, False), (0.4, False), (0.75, True), (61.0, True)])
async def test_a_late_timer_is_logged(
    caplog: pytest.LogCaptureFixture, block: str, delay: float, *, is_logged: bool
) -> None:
    service, machine = make_service(forever), Machine()
    async with monitored(service, machine):
        for number in range(7):
            await service.admit(asking(f"t{number}", f"r{number}"), caller())
        await blocked_for(machine, block, INTERVAL_SECONDS + delay)
        lines = [f"event loop blocked seconds={delay:.1f} open_runs=7 runs=r0,r1,r2,r3,r4"] if is_logged else []
        assert caplog.messages == lines


@pytest.mark.parametrize("is_over", [False, True])
async def test_a_process_that_was_frozen_has_no_blocked_loop(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, *, is_over: bool
) -> None:
    delays: list[float] = []
    monkeypatch.setattr(loop_monitor, "LOOP_LAG", SimpleNamespace(record=lambda delay, _: delays.append(delay)))
    service, machine = make_service(forever), Machine()
    async with monitored(service, machine):
        reader = await service.admit(asking(), caller())
        await eventually(lambda: machine.reads)
        if is_over:
            reader.run.cancel()
        machine.freeze(61.0)
        await service.admit(asking("t2", "r2"), caller())
        reads = machine.reads
        await eventually(lambda: machine.reads > reads + 4)
    assert max(delays) < BLOCKED_SECONDS
    assert caplog.messages == []


async def test_a_run_that_ended_while_the_loop_was_blocked_is_named(caplog: pytest.LogCaptureFixture) -> None:
    may_end, machine = asyncio.Event(), Machine()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hello"
        await may_end.wait()
        machine.wait(INTERVAL_SECONDS + 2)

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
