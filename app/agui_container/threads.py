"""Work off the event loop: blocking code in daemon threads, large data in a few threads, and calls back into the loop.

Rules:

- Blocking code of users and models runs in a daemon thread of its own, because a blocked thread must not delay the exit
  of the process. The threads of anyio (4.16) and of ``ThreadPoolExecutor`` delay it until they end.
- Of the functions that work on large data, ``WORKERS`` work at a time. More would not be faster, because of the
  interpreter lock, and would need more memory at once.
- A cancelled caller returns immediately, whatever its thread does. A thread occupies its slot until it ends, even if
  its caller has been cancelled. Every exception in a thread is raised in the waiting caller.
- ``LoopBridge`` runs every call on the event loop, and a worker thread waits for the outcome. Therefore an invalid
  event raises where it was sent, and a tool cannot get ahead of the run's log.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Generic, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from agui_container.ports import Item

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES = 100_000
"""Bytes of data up to which work on them is done on the event loop: it takes a few milliseconds."""

WORKERS = 2

_limiter: RunVar[CapacityLimiter] = RunVar("offload")
"""The bound of ``offload``, on each event loop its own."""

ROOM = 256
"""Maximum number of items of a stream that wait for the event loop. At the limit the thread waits."""


class ThreadPoolBusy(Exception):
    """All threads of the pool are in use, or the operating system cannot start another one."""


class DaemonThreadPool:
    """Pool of at most ``limit`` threads at the same time."""

    def __init__(self, limit: int) -> None:
        self._free = threading.Semaphore(limit)

    async def call(self, name: str, function: Callable[[], T]) -> T:
        """Run ``function`` in a thread. Raises its exception, and the exceptions of ``stream``."""
        results: list[T] = []
        await self.stream(name, lambda _: results.append(function())).wait_for_items()
        return results[0]

    def stream(self, name: str, work: "Callable[[ThreadStream[T]], None]") -> "ThreadStream[T]":
        """Start a thread that runs ``work`` with the caller's context variables.

        ``work`` feeds the returned stream, which ends when ``work`` returns or raises.

        Raises ``ThreadPoolBusy``.
        """
        stream: ThreadStream[T] = ThreadStream()
        context = copy_context()

        def run_work() -> None:
            try:
                context.run(work, stream)
            except BaseException as error:  # noqa: BLE001 - raised in the event loop
                stream.fail(error)
            self._free.release()  # before the end, because the caller may start the next thread then
            stream.end()

        if not self._free.acquire(blocking=False):
            raise ThreadPoolBusy
        try:
            threading.Thread(target=run_work, name=name, daemon=True).start()
        except RuntimeError as error:
            self._free.release()
            raise ThreadPoolBusy from error
        return stream


class ThreadStream(Generic[T]):
    def __init__(self) -> None:
        self.is_stopped = False
        self._is_ended = False
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._items: deque[T] = deque()
        self._room = threading.Semaphore(ROOM)
        self._failures: list[BaseException] = []

    # Called in the event loop.

    async def wait_for_items(self) -> bool:
        """Return False at the end. Raises the exception of the thread, after the items that it fed before."""
        while True:
            # Clear the event and read the flag before checking the items, so that no later change is missed.
            self._changed.clear()
            is_ended = self._is_ended
            if self._items:
                return True
            if is_ended and self._failures:
                raise self._failures.pop()  # removed, because its traceback refers to this frame
            if is_ended:
                return False
            await self._changed.wait()

    def take_items(self) -> Iterator[T]:
        while self._items:
            self._room.release()
            yield self._items.popleft()

    def stop(self) -> None:
        """Accept no more items and wake a thread that waits for room. Does not block."""
        self.is_stopped = True
        self._room.release()

    # Called in the thread.

    def feed(self, items: Iterable[T]) -> None:
        """Pass items to the event loop one by one, waiting for room. Return at their end or after ``stop``."""
        for item in items:
            self._room.acquire()
            if self.is_stopped:
                return
            self._items.append(item)
            self._wake()

    def fail(self, error: BaseException) -> None:
        """Raise ``error`` in the coroutine at the end of the stream. Ignored if the stream has ended."""
        if not self._is_ended:
            self._failures.append(_as_raisable(error))

    def end(self) -> None:
        """End at the end of the work, or earlier if nobody shall wait for its cleanup."""
        self._is_ended = True
        self._wake()

    def _wake(self) -> None:
        if not self._changed.is_set():
            # The loop may be closed when an abandoned thread ends. Then nothing waits for it.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._changed.set)


UNRAISABLE = (StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
"""Exceptions with a meaning for the event loop or for a coroutine."""


def _as_raisable(error: BaseException) -> BaseException:
    """Wrap ``SystemExit``, which would end the server, and ``StopIteration``, which a coroutine cannot raise."""
    if not isinstance(error, UNRAISABLE):
        return error
    wrapper = RuntimeError(f"the thread raised {type(error).__name__}")
    wrapper.__cause__ = error
    return wrapper


class LoopBridge:
    __slots__ = ("_loop", "_send", "_thread")

    def __init__(self, send: Callable[[Item], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def emit(self, item: Item) -> None:
        self.call(lambda: self._send(item))

    def call(self, function: Callable[[], T]) -> T:
        if threading.get_ident() == self._thread:
            return function()
        outcome: Future[T] = Future()
        self._loop.call_soon_threadsafe(_run_into, outcome, function)
        return outcome.result()


def _run_into(outcome: "Future[T]", function: Callable[[], T]) -> None:
    try:
        outcome.set_result(function())
    except Exception as error:  # noqa: BLE001 - raised in the calling thread
        outcome.set_exception(error)


async def offload(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread, with the caller's context variables. A cancelled caller returns at once."""
    limiter = _limiter.get(None) or CapacityLimiter(WORKERS)
    _limiter.set(limiter)
    return await to_thread.run_sync(partial(work, *args, **kwargs), abandon_on_cancel=True, limiter=limiter)


async def offload_if_large(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that works on ``size`` bytes, in a thread if they are many."""
    if size <= LARGE_BYTES:
        return work(*args, **kwargs)
    return await offload(work, *args, **kwargs)
