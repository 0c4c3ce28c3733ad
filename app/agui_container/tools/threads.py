"""Threads for tools that are plain functions.

Rules: a cancelled caller returns at once and its thread is abandoned. At most ``ACTIVE`` calls run for a waiting
caller; further callers wait for their turn. At most ``ALIVE`` threads exist, including the abandoned ones; then the
next call is refused with a clear error. The calls of one client use half of each at most.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from agui_container.ports import ToolError
from agui_container.runtime.daemon_threads import AccountBusy, CannotStartThread, DaemonThreadPool, ThreadPoolBusy

T = TypeVar("T")

ACTIVE = 64
"""Calls at the same time whose callers are waiting."""

CALLER_ACTIVE = 32
"""The same for one client."""

ALIVE = 512
"""Threads at the same time, including abandoned ones."""

CALLER_ALIVE = 256
"""The same for one client."""

_queues: RunVar["CallQueue"] = RunVar("tool_threads")
_pool = DaemonThreadPool(ALIVE, CALLER_ALIVE)


class CallQueue:
    """Queue of the calls of one event loop: first among the calls of the same client, then among all."""

    def __init__(self) -> None:
        self._all = CapacityLimiter(ACTIVE)
        self._of: dict[str, CapacityLimiter] = {}

    @asynccontextmanager
    async def wait(self, account: str) -> AsyncIterator[None]:
        """Wait for a turn, and give it back at the end of the block."""
        own = self._of.setdefault(account, CapacityLimiter(CALLER_ACTIVE))
        try:
            async with own, self._all:
                yield
        finally:
            statistics = own.statistics()
            if not statistics.borrowed_tokens and not statistics.tasks_waiting:
                self._of.pop(account, None)


async def run_in_thread(function: Callable[[], T], account: str = "") -> T:
    """Call ``function`` in its own thread, with the caller's context variables. It counts for ``account``.

    Raises:
        ToolError: no thread can be started, or too many are running.
    """
    async with _call_queue().wait(account):
        try:
            return await _pool.call("tool", function, account)
        except CannotStartThread as error:
            raise ToolError("The server cannot start another tool call. Try again later.") from error
        except AccountBusy as error:
            raise ToolError(f"You have {CALLER_ALIVE} tool calls that do not end. Try again later.") from error
        except ThreadPoolBusy as error:
            raise ToolError("The server has too many tool calls that do not end. Try again later.") from error


def _call_queue() -> CallQueue:
    # One object per event loop, because a limiter belongs to the loop that uses it first.
    try:
        return _queues.get()
    except LookupError:
        queue = CallQueue()
        _queues.set(queue)
        return queue
