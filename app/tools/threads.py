"""Plain functions off the event loop: one daemon thread per call.

Why not ``anyio.to_thread``: its threads are not daemons (4.16: a function blocked for 20 s holds up the exit of the
process for 20 s), and a drain must end within seconds. Rules: a cancelled caller leaves at once and the thread is left
behind; callers wait for a turn while ``ACTIVE`` calls are awaited; threads left behind by cancelled callers are counted
until they end, and at ``ALIVE`` of them the next call is refused with a clear error.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from app.ports import ToolError

T = TypeVar("T")
R = TypeVar("R")

ACTIVE = 64
ALIVE = 512

_turns: RunVar[CapacityLimiter] = RunVar("tool_threads")
_alive = threading.BoundedSemaphore(ALIVE)


async def in_thread(function: Callable[[], T]) -> T:
    """Call ``function`` in a thread of its own, with the caller's context variables."""
    async with _limiter():
        return await _start(function, _alive)


def _limiter() -> CapacityLimiter:
    # Made here and kept per event loop: a limiter belongs to the loop it was first used in.
    try:
        return _turns.get()
    except LookupError:
        limiter = CapacityLimiter(ACTIVE)
        _turns.set(limiter)
        return limiter


def _start(function: Callable[[], T], alive: threading.BoundedSemaphore) -> asyncio.Future[T]:
    if not alive.acquire(blocking=False):
        raise ToolError("The server has too many tool calls that do not end. Try again later.")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001 - carried to the loop
            _report(loop, _set_error, future, _carried(error))
        else:
            _report(loop, _set_result, future, result)
        finally:
            alive.release()

    try:
        threading.Thread(target=work, name="tool", daemon=True).start()
    except RuntimeError as error:
        alive.release()
        raise ToolError("The server cannot start another tool call. Try again later.") from error
    return future


def _carried(error: BaseException) -> Exception:
    """What may cross to the loop: ``sys.exit()`` in a tool must not end the server, StopIteration cannot be carried."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    carried = RuntimeError(f"the tool raised {type(error).__name__}")
    carried.__cause__ = error
    return carried


def _report(
    loop: asyncio.AbstractEventLoop, setter: Callable[[asyncio.Future[T], R], None], future: asyncio.Future[T], value: R
) -> None:
    # The loop may be closed when an abandoned thread ends at last: nobody waits for it then.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(setter, future, value)


def _set_result(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _set_error(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
