"""Plain functions off the event loop.

Rules: a cancelled caller leaves at once and the thread is left behind; callers wait for a turn while ``ACTIVE`` calls
are awaited; threads left behind by cancelled callers are counted until they end, and at ``ALIVE`` of them the next call
is refused with a clear error.
"""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from agui_container.ports import ToolError
from agui_container.runtime.daemon_threads import CannotStartThread, DaemonThreadPool, ThreadPoolBusy

T = TypeVar("T")

ACTIVE = 64
ALIVE = 512

_turns: RunVar[CapacityLimiter] = RunVar("tool_threads")
_alive = DaemonThreadPool(ALIVE)


async def run_in_thread(function: Callable[[], T]) -> T:
    """Call ``function`` in a thread of its own, with the caller's context variables."""
    async with _limiter():
        try:
            return await _alive.call("tool", function)
        except CannotStartThread as error:
            raise ToolError("The server cannot start another tool call. Try again later.") from error
        except ThreadPoolBusy as error:
            raise ToolError("The server has too many tool calls that do not end. Try again later.") from error


def _limiter() -> CapacityLimiter:
    # Made here and kept per event loop: a limiter belongs to the loop it was first used in.
    try:
        return _turns.get()
    except LookupError:
        limiter = CapacityLimiter(ACTIVE)
        _turns.set(limiter)
        return limiter
