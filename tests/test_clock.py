"""Timers of one delay share one of the event loop's, and come due as if each had its own."""

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context

import pytest

from app.clock import SystemClock
from tests.engine.doubles import eventually
from tests.requirements import requirement


class Watch:
    """The event loop's time, set by hand, and the timers that are set by it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.set: list[tuple[float, Callable[[], None], asyncio.TimerHandle]] = []
        self._loop = asyncio.get_running_loop()
        monkeypatch.setattr(self._loop, "call_at", self._call_at)
        monkeypatch.setattr(self._loop, "time", lambda: self.now)

    def _call_at(self, due: float, callback: Callable[[], None], *, context: Context) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(due, callback, (), self._loop, context)
        self.set.append((due, callback, timer))
        return timer

    def go(self, now: float) -> None:
        """Let what is due by then happen."""
        self.now = now
        while due := [each for each in self.set if each[0] <= now and not each[2].cancelled()]:
            self.set.remove(due[0])
            due[0][2]._run()


@pytest.fixture
async def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


@requirement("speed.memory")
async def test_all_of_one_delay_have_one_timer_and_come_in_order(watch: Watch) -> None:
    clock, rung = SystemClock(), list[int]()
    for number in range(100):
        watch.now = number / 100
        clock.call_later(10, lambda number=number: rung.append(number))  # type: ignore[misc]
    assert [due for due, *_ in watch.set] == [10]
    watch.go(10.5)
    assert rung == list(range(51))
    watch.go(20)
    assert rung == list(range(100))
    assert clock._lines == {}


async def test_what_is_called_off_does_not_come_whoever_calls_it_off_and_when(watch: Watch) -> None:
    clock, rung = SystemClock(), list[str]()

    def first() -> None:
        rung.append("first")
        third.cancel()

    zeroth = clock.call_later(5, lambda: rung.append("zeroth"))
    watch.now = 1
    clock.call_later(5, first)
    third = clock.call_later(5, lambda: rung.append("third"))
    last = clock.call_later(5, lambda: rung.append("last"))
    zeroth.cancel()
    watch.go(5.5)
    assert rung == []
    watch.go(6)
    assert rung == ["first", "last"]
    for alarm in (zeroth, third, last):
        alarm.cancel()
    assert clock._lines == {}


async def test_where_nobody_waits_nothing_is_left(watch: Watch) -> None:
    clock, rung = SystemClock(), list[str]()
    alarms = [clock.call_later(delay, lambda: rung.append("it")) for delay in (1, 2, 3)]
    alarms[0].cancel()
    again = clock.call_later(1, lambda: rung.append("again"))
    alarms[0].cancel()
    assert len(clock._lines) == 3
    for alarm in (*alarms, again):
        alarm.cancel()
    assert clock._lines == {}
    assert all(timer.cancelled() for *_, timer in watch.set)


async def test_one_that_raises_keeps_no_other_from_its_turn(watch: Watch) -> None:
    clock, rung, heard = SystemClock(), list[str](), list[object]()

    def broken() -> None:
        raise LookupError("lost")

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, about: heard.append(repr(about["exception"])))
    clock.call_later(1, broken)
    clock.call_later(1, lambda: rung.append("the next"))
    watch.go(1)
    assert (rung, heard) == (["the next"], ["LookupError('lost')"])


async def test_each_is_called_in_the_context_of_who_has_set_it_and_holds_no_other(watch: Watch) -> None:
    clock, name, seen = SystemClock(), ContextVar[str]("name", default="nobody"), list[str]()
    for each in ("a", "b", "c"):
        context = copy_context()
        context.run(name.set, each)
        context.run(clock.call_later, 1, lambda: seen.append(name.get()))
        watch.now += 0.1
    watch.go(1)
    assert [timer._context.get(name) for *_, timer in watch.set] == [None]  # type: ignore[attr-defined]
    watch.go(2)
    assert seen == ["a", "b", "c"]


async def test_a_timer_that_comes_a_part_of_a_millisecond_early_is_in_time(watch: Watch) -> None:
    clock, rung = SystemClock(), list[str]()
    clock.call_later(1, lambda: rung.append("it"))
    watch.now = 0.9995
    watch.set.pop()[2]._run()
    assert (rung, watch.set) == (["it"], [])


def test_what_another_event_loop_has_left_waiting_holds_nothing_up() -> None:
    clock, rung = SystemClock(), list[str]()

    async def leave() -> None:
        clock.call_later(0.01, lambda: rung.append("left"))

    async def ring() -> None:
        clock.call_later(0.01, lambda: rung.append("rung"))
        await eventually(lambda: bool(rung))

    asyncio.run(leave())
    asyncio.run(ring())
    assert rung == ["rung"]
    assert clock._lines == {}


async def test_real_time_goes_by() -> None:
    clock, rung = SystemClock(), list[str]()
    clock.call_later(0.01, lambda: rung.append("later"))
    clock.call_later(0, lambda: rung.append("now"))
    await eventually(lambda: len(rung) == 2)
    assert rung == ["now", "later"]
