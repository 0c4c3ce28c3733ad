"""Threads for tools that are plain functions.

Rules: a cancelled caller returns at once and its thread is abandoned. At most ``ACTIVE`` calls run for a waiting
caller; further callers wait for their turn. At most ``ALIVE`` threads exist, including the abandoned ones; then the
next call is refused with a clear error. The calls of one identity use half of each at most.
"""

from collections.abc import Callable
from typing import TypeVar

from agui_container.ports import ToolError
from agui_container.threads import CannotStartThread, DaemonThreadPool, IdentityBusy, ThreadPoolBusy
from agui_container.tools.identity_limiter import IdentityLimiter

T = TypeVar("T")

ACTIVE, ALIVE = 64, 512
"""Calls at the same time whose callers are waiting, and threads at the same time, including abandoned ones."""

_turns = IdentityLimiter("tools", ACTIVE, per_identity=ACTIVE // 2)
_pool = DaemonThreadPool(ALIVE, per_identity=ALIVE // 2)


async def run_in_thread(
    function: Callable[[], T], identity: str = "", on_start: Callable[[], None] = lambda: None
) -> T:
    """Call with the caller's context variables. It counts for ``identity``. Raises ``ToolError``.

    ``on_start`` is called when a cancel can no longer prevent the call.
    """
    async with _turns.turn(identity):
        on_start()
        try:
            return await _pool.call("tool", function, identity)
        except CannotStartThread as error:
            raise ToolError("The server cannot start another tool call. Try again later.") from error
        except IdentityBusy as error:
            raise ToolError(f"You have {ALIVE // 2} tool calls that do not end. Try again later.") from error
        except ThreadPoolBusy as error:
            raise ToolError("The server has too many tool calls that do not end. Try again later.") from error
