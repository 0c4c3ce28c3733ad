"""Turns at something that few can do at once, fair between identities.

Rule: an identity has a part of the turns at most. So the work of another one begins beside its own, however much of its
own waits. Work without an identity has no part and shares all turns.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar


class IdentityLimiter:
    """Turns of all, and of each identity. ``name`` is unique in the process."""

    def __init__(self, name: str, total: int, per_identity: int) -> None:
        self._total = total
        self._per_identity = per_identity
        self._turns: RunVar[LoopTurns] = RunVar(name)

    @asynccontextmanager
    async def turn(self, identity: str) -> AsyncIterator[None]:
        turns = self._turns_of_loop()
        if not identity:
            async with turns.all:
                yield
            return
        own = turns.of.setdefault(identity, CapacityLimiter(self._per_identity))
        try:
            async with own, turns.all:
                yield
        finally:
            statistics = own.statistics()
            if not statistics.borrowed_tokens and not statistics.tasks_waiting:
                turns.of.pop(identity, None)

    def _turns_of_loop(self) -> "LoopTurns":
        try:
            return self._turns.get()
        except LookupError:
            turns = LoopTurns(self._total)
            self._turns.set(turns)
            return turns


class LoopTurns:
    """Turns on one event loop, because a limiter belongs to the loop that uses it first."""

    def __init__(self, total: int) -> None:
        self.all = CapacityLimiter(total)
        self.of: dict[str, CapacityLimiter] = {}
