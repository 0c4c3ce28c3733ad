"""Work off the event loop: results of blocking code, callers that stop waiting, and one bound for large data."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from agui_container.threads import (
    LARGE_BYTES,
    ROOM,
    WORKERS,
    DaemonThreadPool,
    ThreadPoolBusy,
    ThreadStream,
    offload,
    offload_if_large,
)
from tests.engine.doubles import eventually

NAME = "test"
WAIT = 120
"""Seconds after which a wait has failed; no test waits this long."""


def start_stream(items: Callable[[], Iterator[int]], daemons: DaemonThreadPool | None = None) -> ThreadStream[int]:
    return (daemons or DaemonThreadPool(1)).stream(NAME, lambda stream: stream.feed(items()))


async def take_all(stream: ThreadStream[int]) -> list[int]:
    taken: list[int] = []
    while await stream.wait_for_items():
        taken.extend(stream.take_items())
    return taken


async def wait_for_event(event: threading.Event) -> bool:
    return await asyncio.to_thread(event.wait, WAIT)


async def wait_until_threads_end() -> None:
    for thread in [thread for thread in threading.enumerate() if thread.name == NAME]:
        await asyncio.to_thread(thread.join, WAIT)
        assert not thread.is_alive()


async def test_a_cancelled_call_counts_until_its_thread_ends() -> None:
    began, go_on = threading.Event(), threading.Event()

    def function() -> None:
        began.set()
        go_on.wait(WAIT)

    daemons = DaemonThreadPool(1)
    calling = asyncio.create_task(daemons.call(NAME, function))
    assert await wait_for_event(began)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    with pytest.raises(ThreadPoolBusy):
        await daemons.call(NAME, lambda: 1)
    go_on.set()
    await wait_until_threads_end()
    assert await daemons.call(NAME, lambda: 1) == 1


async def test_a_thread_that_cannot_be_started_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    daemons = DaemonThreadPool(1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(ThreadPoolBusy):
            await daemons.call(NAME, lambda: 1)
    assert await daemons.call(NAME, lambda: 1) == 1


async def test_a_thread_waits_for_room() -> None:
    given: list[int] = []
    full, refilled = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        for number in range(2 * ROOM):
            given.append(number)
            if number == ROOM:
                full.set()
            if number == ROOM + 1:
                refilled.set()
            yield number

    stream = start_stream(items)
    assert await wait_for_event(full)
    assert len(given) == ROOM + 1
    assert next(iter(stream.take_items())) == 0
    assert await wait_for_event(refilled)
    assert len(given) == ROOM + 2
    stream.stop()
    await wait_until_threads_end()


async def test_stopping_does_not_wait_for_a_blocked_thread_and_the_thread_counts_until_it_ends() -> None:
    blocked, going = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        blocked.set()
        going.wait(WAIT)
        yield 1

    daemons = DaemonThreadPool(1)
    stream = start_stream(items, daemons)
    assert await wait_for_event(blocked)
    stream.stop()
    with pytest.raises(ThreadPoolBusy):
        start_stream(lambda: iter([0]), daemons)
    going.set()
    await wait_until_threads_end()
    assert await take_all(start_stream(lambda: iter([0]), daemons)) == [0]


BLOCKED = """
import asyncio, threading
from agui_container.threads import DaemonThreadPool

async def main():
    DaemonThreadPool(1).stream("blocked", lambda _: threading.Event().wait()).stop()

asyncio.run(main())
"""


def test_a_blocked_thread_does_not_hold_up_the_exit_of_the_process() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", BLOCKED], check=True, timeout=WAIT)


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
