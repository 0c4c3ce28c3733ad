"""Whether a run is let in: the answer that its first reader waits for before anything is sent.

Rule: there is one answer, and it is there before the run's first event or when the run has its place in line.
"""

import asyncio


class Admission:
    """One run's. Made on the event loop."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    @property
    def is_settled(self) -> bool:
        """Whether there is an answer."""
        return self._answer.done()

    def settle(self, error: Exception | None = None) -> None:
        """Let it in, or say why not. What was said first counts."""
        if not self._answer.done():
            self._answer.set_result(error)

    async def granted(self) -> None:
        """Wait for the answer. Raises what it was settled with."""
        error = await asyncio.shield(self._answer)
        if error is not None:
            raise error
