"""Callers take turns at computations on large data."""

import asyncio
import threading
from itertools import count

import pytest

from agui_container.runtime.large_work import AccountTurns, LargeWork
from tests.engine.doubles import eventually

NAMES = count(1)
WAIT = 120.0


class Recorder:
    """Records computations in their order. The first one holds its thread until ``gate`` is set."""

    def __init__(self) -> None:
        self.order = list[str]()
        self.gate = threading.Event()
        self.large_work = LargeWork(f"test_{next(NAMES)}")

    def record(self, name: str) -> None:
        self.order.append(name)
        assert self.gate.wait(WAIT)

    async def begin(self, account: str, times: int) -> list[asyncio.Task[None]]:
        """Ask for computations of an account, and let them join the queue."""
        tasks = [asyncio.create_task(self.large_work.run(account, self.record, account)) for _ in range(times)]
        await asyncio.sleep(0)
        return tasks

    async def end(self, *tasks: asyncio.Task[None]) -> list[str]:
        self.gate.set()
        await asyncio.wait_for(asyncio.gather(*tasks), WAIT)
        return self.order


async def test_a_second_caller_is_not_behind_fifty_computations_of_the_first() -> None:
    recorder = Recorder()
    tasks = [*await recorder.begin("first", 50), *await recorder.begin("second", 2), *await recorder.begin("third", 1)]
    order = await recorder.end(*tasks)
    assert order[:6] == ["first", "first", "second", "third", "first", "second"]
    assert len(order) == 53


@pytest.mark.parametrize("is_given", [False, True])
async def test_a_caller_that_is_cancelled_while_it_waits_holds_up_no_other(*, is_given: bool) -> None:
    turns, order = AccountTurns(), list[str]()

    async def take(account: str) -> None:
        await turns.begin(account)
        order.append(account)
        turns.end()

    await turns.begin("first")
    cancelled, last = (asyncio.create_task(take(account)) for account in ("second", "third"))
    await asyncio.sleep(0)
    if not is_given:
        cancelled.cancel()
    turns.end()
    cancelled.cancel()
    await asyncio.wait_for(last, WAIT)
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert order == ["third"]


async def test_a_computation_that_fails_ends_its_turn() -> None:
    large_work = LargeWork(f"test_{next(NAMES)}")
    with pytest.raises(ValueError, match="invalid literal"):
        await large_work.run("first", int, "x")
    assert await large_work.run("first", int, "1") == 1


async def test_a_computation_holds_its_turn_until_it_ends_even_if_its_caller_is_cancelled() -> None:
    recorder = Recorder()
    (cancelled,) = await recorder.begin("first", 1)
    await eventually(lambda: recorder.order == ["first"])
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):  # immediately
        await asyncio.wait_for(cancelled, WAIT)
    tasks = await recorder.begin("second", 1)
    for _ in range(100):
        await asyncio.sleep(0)
    assert recorder.order == ["first"]
    assert await recorder.end(*tasks) == ["first", "second"]
