"""Blocking code for the event loop: each call, and each stream of items, in a daemon thread of its own.

Why daemon threads: one that is stuck must not hold up the exit of the process, and neither anyio's threads (4.16: a
function blocked for 20 s holds it up for 20 s) nor ``ThreadPoolExecutor``'s are daemons. Rules: whoever waits leaves at
once when it is cancelled, whatever the thread does; a thread counts until it ends, also when nobody listens to it any
more; whatever is raised in it, those who wait are told.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")

ROOM = 256
"""Items of a stream that wait for the loop; then its thread waits."""


class ThreadPoolBusy(Exception):
    """All threads are taken."""


class CannotStartThread(ThreadPoolBusy):
    """The machine has none left."""


class DaemonThreadPool:
    """At most ``limit`` threads at a time."""

    def __init__(self, limit: int) -> None:
        self._free = threading.BoundedSemaphore(limit)

    async def call(self, name: str, function: Callable[[], T]) -> T:
        """What ``function`` gives. Raises what it raises, and as ``stream``."""
        results: list[T] = []
        await self.stream(name, lambda _: results.append(function())).wait_for_items()
        return results[0]

    def stream(self, name: str, work: "Callable[[ThreadStream[T]], None]") -> "ThreadStream[T]":
        """Start a thread for ``work``, with the caller's context variables. It feeds the stream, which ends with it.

        Raises:
            Busy: there is none left.
        """
        stream: ThreadStream[T] = ThreadStream()
        context = copy_context()

        def body() -> None:
            try:
                context.run(work, stream)
            except BaseException as error:  # noqa: BLE001 - carried to the loop
                stream.fail(error)
            self._free.release()  # before the end is told: who has heard of it may start the next one
            stream.end()

        if not self._free.acquire(blocking=False):
            raise ThreadPoolBusy
        try:
            threading.Thread(target=body, name=name, daemon=True).start()
        except RuntimeError as error:
            self._free.release()
            raise CannotStartThread from error
        return stream


class ThreadStream(Generic[T]):
    """Items on their way from one thread to one coroutine."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._ended = False
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._items: deque[T] = deque()
        self._room = threading.Semaphore(ROOM)
        self._failures: list[Exception] = []

    # In the loop.

    async def wait_for_items(self) -> bool:
        """Wait for items; False is the end. Raises what was raised in the thread, after the items before it."""
        while True:
            # Cleared, and the end looked at, before the items: what is added from here on is not slept through.
            self._filled.clear()
            ended = self._ended
            if self._items:
                return True
            if ended and self._failures:
                raise self._failures.pop()  # not kept, because its traceback keeps this frame
            if ended:
                return False
            await self._filled.wait()

    def take_items(self) -> Iterator[T]:
        """What is there, oldest first."""
        while self._items:
            self._room.release()
            yield self._items.popleft()

    def stop(self) -> None:
        """Take no more, and let a thread that waits for room go. Never waits."""
        self.is_stopped = True
        self._room.release()

    # In the thread.

    def feed(self, items: Iterable[T]) -> None:
        """Hand over one after the other, waiting for room, until there are no more or nobody takes them."""
        for item in items:
            self._room.acquire()
            if self.is_stopped:
                return
            self._items.append(item)
            self._wake()

    def fail(self, error: BaseException) -> None:
        """Have this raised at the end. After that it is nobody's."""
        if not self._ended:
            self._failures.append(_as_raisable(error))

    def end(self) -> None:
        """Nothing follows. Said by ``DaemonThreadPool``, or earlier by work that has to clean up with nobody waiting for it."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if not self._filled.is_set():
            # The loop may be closed when an abandoned thread ends at last: nobody waits for it then.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._filled.set)


def _as_raisable(error: BaseException) -> Exception:
    """What may cross to the loop: ``sys.exit()`` must not end the server, and StopIteration cannot be raised there."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    carried = RuntimeError(f"the thread raised {type(error).__name__}")
    carried.__cause__ = error
    return carried
