"""Threads hand over what blocking iterators give, and nobody waits for a thread that nobody listens to."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from app.models.bedrock.threads import ROOM, Busy, Threads
from app.ports import LOG_FIELDS
from tests.models.bedrock.doubles import threads_gone


@dataclass
class Doing:
    """Work made of a generator function."""

    start: Callable[[], Iterator[int]]
    closed: threading.Event = field(default_factory=threading.Event)
    aborted: threading.Event = field(default_factory=threading.Event)

    def items(self) -> Iterator[int]:
        return self.start()

    def close(self) -> None:
        self.closed.set()

    def abort(self) -> None:
        self.aborted.set()


def counting(most: int) -> Doing:
    return Doing(lambda: iter(range(most)))


async def test_items_come_in_order_and_the_end_is_an_empty_list() -> None:
    flow = Threads(1).flow(counting(10 * ROOM))
    taken: list[int] = []
    while items := await flow.take():
        assert len(items) <= ROOM
        taken.extend(items)
    assert taken == list(range(10 * ROOM))
    assert await flow.take() == []
    await threads_gone()


async def test_a_thread_waits_for_room() -> None:
    given: list[int] = []
    full = threading.Event()

    def items() -> Iterator[int]:
        for number in range(2 * ROOM):
            given.append(number)
            if number == ROOM:
                full.set()
            yield number

    flow = Threads(1).flow(Doing(items))
    await asyncio.to_thread(full.wait, 10)
    assert len(given) == ROOM + 1
    assert len(await flow.take()) == ROOM
    flow.stop()
    await threads_gone()
    assert len(given) <= 2 * ROOM


async def test_a_thread_that_waits_for_room_goes_when_nobody_takes() -> None:
    full = threading.Event()

    def items() -> Iterator[int]:
        yield from range(ROOM)
        full.set()
        yield ROOM

    flow = Threads(1).flow(Doing(items))
    await asyncio.to_thread(full.wait, 10)
    flow.stop()
    await threads_gone()


async def test_a_failure_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise LookupError

    flow = Threads(1).flow(Doing(items))
    await threads_gone()
    assert await flow.take() == [1]
    with pytest.raises(LookupError):
        await flow.take()


async def test_an_exit_in_a_thread_is_a_failure_and_no_exit() -> None:
    def items() -> Iterator[int]:
        yield sys.exit(1)

    flow = Threads(1).flow(Doing(items))
    with pytest.raises(RuntimeError, match="SystemExit"):
        await flow.take()


async def test_stopping_does_not_wait_for_a_blocked_thread_and_the_thread_counts_until_it_ends() -> None:
    going, blocked = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        blocked.set()
        going.wait(10)
        yield 1

    threads, work = Threads(1), Doing(items)
    flow = threads.flow(work)
    await asyncio.to_thread(blocked.wait, 10)
    flow.stop()
    assert work.aborted.is_set()
    assert not work.closed.is_set()
    with pytest.raises(Busy):
        threads.flow(counting(1))
    going.set()
    await threads_gone()
    assert work.closed.is_set()
    assert await threads.flow(counting(1)).take() == [0]
    await threads_gone()


async def test_a_thread_is_free_again_whatever_its_clean_up_does() -> None:
    class Careless(Doing):
        def close(self) -> None:
            raise LookupError

    threads = Threads(1)
    assert await threads.flow(Careless(lambda: iter([1]))).take() == [1]
    await threads_gone()
    assert await threads.flow(counting(1)).take() == [0]
    await threads_gone()


async def test_a_thread_that_cannot_be_started_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads = Threads(1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(Busy):
            threads.flow(counting(1))
    assert await threads.flow(counting(1)).take() == [0]
    await threads_gone()


async def test_log_lines_of_the_thread_carry_the_ids_of_the_run() -> None:
    seen: list[object] = []

    def items() -> Iterator[int]:
        seen.append(LOG_FIELDS.get())
        yield 1

    token = LOG_FIELDS.set({"run": "r1"})
    await Threads(1).flow(Doing(items)).take()
    LOG_FIELDS.reset(token)
    assert seen == [{"run": "r1"}]


BLOCKED = """
import asyncio, threading
from app.models.bedrock.threads import Threads

class Blocked:
    def items(self):
        threading.Event().wait()
        yield
    def close(self): ...
    def abort(self): ...

async def main():
    Threads(1).flow(Blocked()).stop()

asyncio.run(main())
"""


def test_a_blocked_thread_does_not_hold_up_the_exit_of_the_process() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", BLOCKED], check=True, timeout=20)


LAZY = """
import sys
from app.models.bedrock import BedrockModel
BedrockModel("any.model")
assert not {"boto3", "botocore"} & sys.modules.keys()
"""


def test_boto3_is_not_imported_before_the_first_call() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", LAZY], check=True, timeout=20)
