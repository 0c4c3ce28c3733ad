"""Blocking iterators for the event loop: one daemon thread each, a bounded number of them.

Why daemon threads: a read that stalls must not hold up the exit of the process (neither anyio's threads nor
``ThreadPoolExecutor``'s are daemons). Rules: whoever stops taking leaves at once, whatever the thread is doing; a
thread that nobody listens to counts until it ends; at most ``ROOM`` items wait for the loop, then the thread waits.
"""

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Iterator
from contextvars import copy_context
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

ROOM = 256

logger = logging.getLogger(__name__)


class Work(Protocol[T_co]):
    """What a thread does."""

    def items(self) -> Iterator[T_co]:
        """In the thread: give item after item."""

    def close(self) -> None:
        """In the thread, after the last item: clean up; nobody waits for it."""

    def abort(self) -> None:
        """In the loop: nobody takes items any more; make a blocked ``items`` end soon. Must not block."""


class Busy(Exception):
    """All threads are taken."""


class Threads:
    """At most ``limit`` threads at a time."""

    def __init__(self, limit: int) -> None:
        self._free = threading.BoundedSemaphore(limit)

    def flow(self, work: Work[T]) -> "Flow[T]":
        """Start a thread for ``work``.

        Raises:
            Busy: there is none left.
        """
        if not self._free.acquire(blocking=False):
            raise Busy
        flow = Flow(work, self._free)
        context = copy_context()
        try:
            threading.Thread(target=lambda: context.run(flow.run), name="model", daemon=True).start()
        except RuntimeError as error:
            self._free.release()
            raise Busy from error
        return flow


class Flow(Generic[T]):
    """Items on their way from one thread to one coroutine."""

    def __init__(self, work: Work[T], free: threading.BoundedSemaphore) -> None:
        self._work = work
        self._free = free
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._items: deque[T] = deque()
        self._room = threading.Semaphore(ROOM)
        self._stopped = False
        self._ended = False
        self._failure: Exception | None = None

    # In the loop.

    async def take(self) -> list[T]:
        """Wait for items; an empty list is the end. Raises what ``items`` raised, after what came before it."""
        while True:
            # Cleared, and the end looked at, before the items: what is added from here on is not slept through.
            self._filled.clear()
            ended = self._ended
            taken = [self._items.popleft() for _ in range(len(self._items))]
            if taken:
                self._room.release(len(taken))
                return taken
            if ended:
                if self._failure is not None:
                    raise self._failure
                return []
            await self._filled.wait()

    def stop(self) -> None:
        """Take no more. Never waits."""
        self._stopped = True
        self._room.release()
        if not self._ended:
            self._work.abort()

    # In the thread.

    def run(self) -> None:
        """Hand over every item, report the end, clean up."""
        try:
            for item in self._work.items():
                if not self._put(item):
                    break
        except BaseException as error:  # noqa: BLE001 - carried to the loop
            self._failure = _carried(error)
        self._ended = True
        self._wake()
        try:
            self._work.close()
        except Exception:
            logger.debug("| cleaning up after a model call failed", exc_info=True)
        finally:
            self._free.release()

    def _put(self, item: T) -> bool:
        self._room.acquire()
        if self._stopped:
            return False
        self._items.append(item)
        self._wake()
        return True

    def _wake(self) -> None:
        if not self._filled.is_set():
            # The loop may be closed when an abandoned thread ends at last: nobody waits for it then.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._filled.set)


def _carried(error: BaseException) -> Exception:
    """``sys.exit()`` in a thread must not end the server."""
    if isinstance(error, Exception):
        return error
    carried = RuntimeError(f"the thread raised {type(error).__name__}")
    carried.__cause__ = error
    return carried
