"""Work on large data, off the event loop, so that it delays nobody.

Rule: at most ``WORKERS`` functions work at a time. More would not be faster, because of the interpreter lock, and would
need more memory at once. A cancelled caller returns immediately, and its thread continues.
"""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES = 100_000
"""Bytes of data up to which work on them is done on the event loop: it takes a few milliseconds."""

WORKERS = 2

_limiter: RunVar[CapacityLimiter] = RunVar("offload")
"""The bound, on each event loop its own."""


async def offload(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread, with the caller's context variables."""
    limiter = _limiter.get(None) or CapacityLimiter(WORKERS)
    _limiter.set(limiter)
    return await to_thread.run_sync(partial(work, *args, **kwargs), abandon_on_cancel=True, limiter=limiter)


async def offload_if_large(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that works on ``size`` bytes, in a thread if they are many."""
    if size <= LARGE_BYTES:
        return work(*args, **kwargs)
    return await offload(work, *args, **kwargs)
