"""A timer that is late while runs are open is logged; an idle process has no timer."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine import loop_monitor
from agui_container.engine.loop_monitor import BLOCKED_SECONDS, INTERVAL_SECONDS
from agui_container.ports import Item
from tests.engine.doubles import asking, caller, envelopes, eventually, forever, make_service


class Time:
    """The time of the monitor. The test ends each of its pauses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.waiting: asyncio.Future[None] | None = None
        monkeypatch.setattr(loop_monitor, "time", self)
        monkeypatch.setattr(loop_monitor, "asyncio", self)

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.waiting = asyncio.get_running_loop().create_future()
        await self.waiting

    async def pass_by(self, seconds: float) -> None:
        """End a pause after this time, and wait for the next one."""
        await eventually(lambda: self.waiting is not None and not self.waiting.done())
        count = len(self.pauses)
        self.now += seconds
        assert self.waiting is not None
        self.waiting.set_result(None)
        await eventually(lambda: len(self.pauses) > count)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


@pytest.mark.parametrize(("delay", "is_logged"), [(0.0, False), (BLOCKED_SECONDS, False), (0.75, True), (61.0, True)])
async def test_a_late_timer_is_logged(
    time: Time, caplog: pytest.LogCaptureFixture, delay: float, *, is_logged: bool
) -> None:
    service = make_service(forever)
    await service.open()
    readers = [await service.admit(asking(f"t{number}", f"r{number}"), caller()) for number in range(7)]
    await time.pass_by(INTERVAL_SECONDS)
    await time.pass_by(INTERVAL_SECONDS + delay)
    lines = [f"event loop blocked seconds={delay:.1f} open_runs=7 runs=r0,r1,r2,r3,r4"] if is_logged else []
    assert caplog.messages == lines
    await service.drain(0)
    for reader in readers:
        reader.close()
    await service.aclose()


async def test_a_run_that_ended_while_the_loop_was_blocked_is_named(
    time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    may_end = asyncio.Event()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hello"
        await may_end.wait()

    service = make_service(agent)
    await service.open()
    reader = await service.admit(asking(), caller())
    await eventually(lambda: time.pauses)
    may_end.set()
    await envelopes(reader)
    time.now += INTERVAL_SECONDS + 2
    assert time.waiting is not None
    time.waiting.set_result(None)
    await eventually(lambda: caplog.messages)
    assert caplog.messages == ["event loop blocked seconds=2.0 open_runs=0 runs=r1"]
    await service.aclose()


async def test_an_idle_process_is_not_woken(time: Time) -> None:
    service = make_service(forever)
    await service.open()
    for _ in range(10):
        await asyncio.sleep(0)
    assert time.pauses == []
    await service.aclose()
