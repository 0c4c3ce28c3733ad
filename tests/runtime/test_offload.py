"""Work on large data, off the event loop, within one bound."""

import asyncio
import threading

import pytest

from agui_container.runtime.offload import LARGE_BYTES, WORKERS, offload, offload_if_large
from tests.engine.doubles import eventually

WAIT = 120.0


async def test_so_many_functions_work_at_a_time_and_a_cancelled_caller_returns_at_once() -> None:
    gate, begun = threading.Event(), list[int]()

    def work(number: int) -> None:
        begun.append(number)
        assert gate.wait(WAIT)

    tasks = [asyncio.create_task(offload(work, number)) for number in range(WORKERS + 2)]
    await eventually(lambda: len(begun) == WORKERS)
    tasks.pop().cancel()
    await eventually(lambda: len(begun) == WORKERS)
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(tasks.pop(0), WAIT)
    gate.set()
    await asyncio.wait_for(asyncio.gather(*tasks), WAIT)
    assert sorted(begun) == list(range(WORKERS + 1))


@pytest.mark.parametrize(("size", "is_on_loop"), [(LARGE_BYTES, True), (LARGE_BYTES + 1, False)])
async def test_work_on_little_data_stays_on_the_loop(size: int, *, is_on_loop: bool) -> None:
    thread = await offload_if_large(size, threading.get_ident)
    assert (thread == threading.get_ident()) is is_on_loop
