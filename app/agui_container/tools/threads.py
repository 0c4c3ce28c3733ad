"""Threads for tools that are plain functions.

Rule: a cancelled caller returns at once and its thread is abandoned. At most ``THREADS`` exist, the abandoned ones
included. Then the next call is refused with a clear error.
"""

from collections.abc import Callable
from typing import TypeVar

from agui_container.ports import ToolError
from agui_container.threads import DaemonThreadPool, ThreadPoolBusy

T = TypeVar("T")

THREADS = 512

_pool = DaemonThreadPool(THREADS)


async def run_in_thread(function: Callable[[], T]) -> T:
    """Call with the caller's context variables. Raises ``ToolError``."""
    try:
        return await _pool.call("tool", function)
    except ThreadPoolBusy as error:
        raise ToolError("The server has too many tool calls that do not end. Try again later.") from error
