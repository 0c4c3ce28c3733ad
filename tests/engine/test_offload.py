"""Work on large data, off the event loop, in turns of identities."""

import asyncio
import threading

import pytest

from agui_container.runtime.offload import LARGE_BYTES, WORKERS, offload, offload_if_large
from tests.engine.doubles import eventually
from tests.requirements import requirement

WAIT = 120.0


class Recorder:
    """Records work in its order. All of it holds its thread until ``gate`` is set."""

    def __init__(self) -> None:
        self.order = list[str]()
        self.gate = threading.Event()

    def record(self, name: str) -> None:
        self.order.append(name)
        assert self.gate.wait(WAIT)

    async def begin(self, identity: str, times: int) -> list[asyncio.Task[None]]:
        """Ask for work of an identity, and wait until as much of it has begun as may."""
        tasks = [asyncio.create_task(offload(identity, self.record, identity)) for _ in range(times)]
        for _ in range(100):
            await asyncio.sleep(0)
        return tasks

    async def end(self, *tasks: asyncio.Task[None]) -> list[str]:
        self.gate.set()
        await asyncio.wait_for(asyncio.gather(*tasks), WAIT)
        return self.order


@requirement("caller.loop")
async def test_work_of_a_second_identity_is_not_behind_fifty_pieces_of_the_first() -> None:
    recorder = Recorder()
    tasks = [*await recorder.begin("first", 50), *await recorder.begin("second", 2)]
    await eventually(lambda: len(recorder.order) == WORKERS)
    assert sorted(recorder.order) == ["first", "second"]  # their threads begin in any order
    assert len(await recorder.end(*tasks)) == 52


async def test_work_without_an_identity_has_all_turns() -> None:
    recorder = Recorder()
    tasks = await recorder.begin("", 3)
    await eventually(lambda: len(recorder.order) == WORKERS)
    assert await recorder.end(*tasks) == [""] * 3


async def test_a_caller_that_is_cancelled_while_it_waits_has_nothing_done() -> None:
    recorder = Recorder()
    (first,), (waiting,) = await recorder.begin("first", 1), await recorder.begin("first", 1)
    await eventually(lambda: recorder.order == ["first"])
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, WAIT)
    assert await recorder.end(first) == ["first"]


async def test_work_that_fails_ends_its_turn() -> None:
    for _ in range(WORKERS):
        with pytest.raises(ValueError, match="invalid literal"):
            await offload("first", int, "x")
    assert await offload("first", int, "1") == 1


async def test_work_holds_its_turn_until_it_ends_even_if_its_caller_is_cancelled() -> None:
    recorder = Recorder()
    (cancelled,) = await recorder.begin("first", 1)
    await eventually(lambda: recorder.order == ["first"])
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):  # immediately
        await asyncio.wait_for(cancelled, WAIT)
    tasks = await recorder.begin("first", 1)
    assert recorder.order == ["first"]
    assert await recorder.end(*tasks) == ["first", "first"]


@pytest.mark.parametrize(("size", "is_on_loop"), [(LARGE_BYTES, True), (LARGE_BYTES + 1, False)])
async def test_work_on_little_data_stays_on_the_loop(size: int, *, is_on_loop: bool) -> None:
    thread = await offload_if_large("first", size, threading.get_ident)
    assert (thread == threading.get_ident()) is is_on_loop
