"""Computations on large data, in a thread, so that they do not block the event loop.

Rule: one computation of a kind runs at a time. Parallel ones would not be faster, because of the interpreter lock, and
would need more memory at once. Callers take turns, so a caller waits for at most one computation of each
other caller.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
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
        self._turns: RunVar[AccountTurns] = RunVar(name)

    async def run(self, account: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread, in a turn of this account."""
        turns = self._turns_of_loop()
        async with turns.turn(account):
            return await anyio.to_thread.run_sync(partial(work, *args, **kwargs), limiter=turns.limiter)

    def _turns_of_loop(self) -> "AccountTurns":
        # Each event loop has its own turns, because a limiter belongs to the loop that uses it first.
        try:
            return self._turns.get()
        except LookupError:
            turns = AccountTurns()
            self._turns.set(turns)
            return turns


class AccountTurns:
    """Turns of accounts, one at a time.

    Attributes:
        limiter: limits the threads to one.
    """

    def __init__(self) -> None:
        self.limiter = CapacityLimiter(1)
        self._is_taken = False
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, account: str) -> AsyncIterator[None]:
        """Wait for the next turn of an account, and hold it until the end of the block."""
        if self._is_taken:
            await self._wait(account)
        self._is_taken = True
        try:
            yield
        finally:
            self._give_turn()

    async def _wait(self, account: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the turn was given just before
                self._give_turn()
            raise

    def _give_turn(self) -> None:
        """Give the turn to the account that has waited longest. It then waits behind the others."""
        while self._waiting:
            account, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[account] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._is_taken = False
