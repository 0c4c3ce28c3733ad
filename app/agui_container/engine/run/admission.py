"""Whether a run is let in: the answer that its first reader waits for before anything is sent.

Rule: there is one answer, and it is there before readers see the run's first event or when the run has its place in
line.
"""

import asyncio


class Admission:
    """One run's."""

    __slots__ = ("_error", "_waiting", "is_settled")

    def __init__(self) -> None:
        self.is_settled = False
        """Whether there is an answer."""
        self._error: Exception | None = None
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    def settle(self, error: Exception | None = None) -> None:
        """Let it in, or say why not. What was said first counts."""
        if self.is_settled:
            return
        self.is_settled, self._error = True, error
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting = ()

    async def wait(self) -> None:
        """Wait for the answer. Raises what it was settled with."""
        if not self.is_settled:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting += (waiter,)
            await waiter
        if self._error is not None:
            raise self._error
