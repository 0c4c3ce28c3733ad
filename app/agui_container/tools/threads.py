"""Threads for tools that are plain functions.

Rules: a cancelled caller returns at once and its thread is abandoned. At most ``ACTIVE`` calls run for a waiting
caller; further callers wait for their turn. At most ``ALIVE`` threads exist, including the abandoned ones; then the
next call is refused with a clear error.
"""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from agui_container.ports import ToolError
from agui_container.runtime.daemon_threads import CannotStartThread, DaemonThreadPool, ThreadPoolBusy

T = TypeVar("T")

ACTIVE = 64
"""Calls at the same time whose callers are waiting."""

ALIVE = 512
"""Threads at the same time, including abandoned ones."""

_limiters: RunVar[CapacityLimiter] = RunVar("tool_threads")
_pool = DaemonThreadPool(ALIVE)


async def run_in_thread(function: Callable[[], T]) -> T:
    """Call ``function`` in its own thread, with the caller's context variables.

    Raises:
        ToolError: no thread can be started, or too many are running.
    """
    async with _limiter():
        try:
            return await _pool.call("tool", function)
        except CannotStartThread as error:
            raise ToolError("The server cannot start another tool call. Try again later.") from error
        except ThreadPoolBusy as error:
            raise ToolError("The server has too many tool calls that do not end. Try again later.") from error


def _limiter() -> CapacityLimiter:
    # One limiter per event loop, because a limiter belongs to the loop that uses it first.
    try:
        return _limiters.get()
    except LookupError:
        limiter = CapacityLimiter(ACTIVE)
        _limiters.set(limiter)
        return limiter
