"""Daemon threads: results of blocking code, and callers that stop waiting."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import pytest

from agui_container.runtime.daemon_threads import (
    ROOM,
    CannotStartThread,
    DaemonThreadPool,
    ThreadPoolBusy,
    ThreadStream,
)

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
    """Wait for a thread without stopping the loop."""
    return await asyncio.to_thread(event.wait, WAIT)


async def wait_until_threads_end() -> None:
    """Wait until no thread is alive."""
    for thread in [thread for thread in threading.enumerate() if thread.name == NAME]:
        await asyncio.to_thread(thread.join, WAIT)
        assert not thread.is_alive()


# --- calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), StopIteration(), asyncio.CancelledError()])
async def test_an_error_that_the_loop_cannot_raise_is_wrapped_and_the_thread_is_free_again(
    error: BaseException,
) -> None:
    def function() -> None:
        raise error

    daemons = DaemonThreadPool(1)
    async with asyncio.timeout(WAIT):
        with pytest.raises(RuntimeError, match=f"the thread raised {type(error).__name__}") as caught:
            await daemons.call(NAME, function)
        assert caught.value.__cause__ is error
        assert await daemons.call(NAME, lambda: 1) == 1


async def test_a_call_raises_what_the_function_raises() -> None:
    error = LookupError()

    def function() -> None:
        raise error

    with pytest.raises(LookupError) as caught:
        await DaemonThreadPool(1).call(NAME, function)
    assert caught.value is error


async def test_a_thread_is_free_as_soon_as_its_call_has_ended() -> None:
    daemons = DaemonThreadPool(1)
    assert [await daemons.call(NAME, lambda: 1) for _ in range(100)] == [1] * 100


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
        with pytest.raises(CannotStartThread):
            await daemons.call(NAME, lambda: 1)
    assert await daemons.call(NAME, lambda: 1) == 1


async def test_context_variables_reach_the_thread() -> None:
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("here")
    assert await DaemonThreadPool(1).call(NAME, variable.get) == "here"


# --- streams ----------------------------------------------------------------------------------------------------------


async def test_items_come_in_order_and_the_end_stays_the_end() -> None:
    stream = start_stream(lambda: iter(range(10 * ROOM)))
    assert await take_all(stream) == list(range(10 * ROOM))
    assert not await stream.wait_for_items()


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


async def test_a_thread_that_waits_for_room_goes_when_nobody_takes() -> None:
    full = threading.Event()

    def items() -> Iterator[int]:
        yield from range(ROOM)
        full.set()
        yield ROOM

    stream = start_stream(items)
    assert await wait_for_event(full)
    stream.stop()
    await wait_until_threads_end()


async def test_a_failure_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise LookupError

    stream = start_stream(items)
    await wait_until_threads_end()
    assert await stream.wait_for_items()
    assert list(stream.take_items()) == [1]
    with pytest.raises(LookupError):
        await stream.wait_for_items()


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


async def test_a_thread_that_cleans_up_without_a_reader_counts_until_it_is_done() -> None:
    going = threading.Event()

    def work(stream: ThreadStream[int]) -> None:
        stream.feed([1])
        stream.end()
        going.wait(WAIT)
        raise SystemExit

    daemons = DaemonThreadPool(1)
    stream = daemons.stream(NAME, work)
    assert await take_all(stream) == [1]
    with pytest.raises(ThreadPoolBusy):
        start_stream(lambda: iter([0]), daemons)
    going.set()
    await wait_until_threads_end()
    assert await take_all(start_stream(lambda: iter([0]), daemons)) == [0]


BLOCKED = """
import asyncio, threading
from agui_container.runtime.daemon_threads import DaemonThreadPool

async def main():
    DaemonThreadPool(1).stream("blocked", lambda _: threading.Event().wait()).stop()

asyncio.run(main())
"""


def test_a_blocked_thread_does_not_hold_up_the_exit_of_the_process() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", BLOCKED], check=True, timeout=WAIT)
