"""Computations on large data, in a thread, so that they do not block the event loop.

Rule: one computation of a kind runs at a time. Parallel ones would not be faster, because of the interpreter lock, and
would need more memory at once.
"""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

P = ParamSpec("P")
T = TypeVar("T")


class LargeWork:
    """Computations of one kind. ``name`` is unique in the process."""

    def __init__(self, name: str) -> None:
        self._limiter: RunVar[CapacityLimiter] = RunVar(name)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread, after the computations that already wait."""
        return await anyio.to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._slot())

    def _slot(self) -> CapacityLimiter:
        # One limiter per event loop, because a limiter belongs to the loop that uses it first.
        try:
            return self._limiter.get()
        except LookupError:
            limiter = CapacityLimiter(1)
            self._limiter.set(limiter)
            return limiter
