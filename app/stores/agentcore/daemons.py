"""Blocking calls off the event loop, each in a daemon thread of its own, a bounded number at a time.

Why daemon threads: a call that stalls must not hold up the exit of the process. Rule: whoever is cancelled leaves at
once; the thread goes on, and counts until it ends.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


class Daemons:
    """At most ``limit`` threads; further calls wait."""

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit)

    async def run(self, work: Callable[[], T]) -> T:
        """What ``work`` gives. Raises what it raises."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        context = copy_context()

        def settle(outcome: Callable[[], None]) -> None:
            self._free.release()
            if not done.done():
                outcome()

        def body() -> None:
            outcome = _outcome(lambda: context.run(work), done)
            # The loop may be closed when an abandoned thread ends at last: nobody waits for it then.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, outcome)

        try:
            threading.Thread(target=body, name="memory", daemon=True).start()
        except RuntimeError:
            self._free.release()
            raise
        return await done


def _outcome(work: Callable[[], T], done: "asyncio.Future[T]") -> Callable[[], None]:
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - carried to the loop
        failure = error
        return lambda: done.set_exception(failure)
    return lambda: done.set_result(result)
