"""Work on large data, off the event loop, so that it delays nobody.

Rule: at most ``WORKERS`` threads work at a time. More would not be faster, because of the interpreter lock, and would
need more memory at once. One identity has one of them, so the work of a second one is not behind all of the first.

Rule: a cancelled caller returns immediately, but its turn lasts until its work ends.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import to_thread

from agui_container.runtime.futures import mark_retrieved
from agui_container.runtime.identity_limiter import IdentityLimiter

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES = 100_000
"""Bytes of data up to which work on them is done on the event loop: it takes a few milliseconds."""

WORKERS = 2

_turns = IdentityLimiter("offload", WORKERS, per_identity=WORKERS // 2)


async def offload(identity: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread, in a turn of this identity, with the caller's context variables."""
    call = partial(work, *args, **kwargs)
    is_begun = False

    async def run() -> T:
        nonlocal is_begun
        async with _turns.turn(identity):
            is_begun = True
            return await to_thread.run_sync(call)

    task = asyncio.create_task(run(), name="offload")
    task.add_done_callback(mark_retrieved)  # a caller that was cancelled does not get the error
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not is_begun:
            task.cancel()
        raise


async def offload_if_large(identity: str, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that works on ``size`` bytes, in a thread if they are many."""
    if size <= LARGE_BYTES:
        return work(*args, **kwargs)
    return await offload(identity, work, *args, **kwargs)
