"""Computations on large data, in a thread, so that they do not block the event loop.

Rule: one computation of a kind runs at a time. Parallel ones would not be faster, because of the interpreter lock, and
would need more memory at once. Callers take turns, so a caller waits for at most one computation of each other caller.
A cancelled caller returns immediately, but its turn lasts until its computation ends.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from anyio.lowlevel import RunVar

P = ParamSpec("P")
T = TypeVar("T")


class LargeWork:
    """Computations of one kind. ``name`` is unique in the process."""

    def __init__(self, name: str) -> None:
        self._turns: RunVar[AccountTurns] = RunVar(name)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, account: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread, in a turn of this account."""
        turns = self._turns_of_loop()
        await turns.begin(account)
        call = partial(copy_context().run, work, *args, **kwargs)
        try:
            result = asyncio.get_running_loop().run_in_executor(self._thread, call)
        except RuntimeError:  # the system cannot start the thread
            turns.end()
            raise
        result.add_done_callback(lambda _: turns.end())
        return await asyncio.shield(result)

    def _turns_of_loop(self) -> "AccountTurns":
        # Each event loop has its own turns, because a future belongs to the loop that waits for it.
        try:
            return self._turns.get()
        except LookupError:
            turns = AccountTurns()
            self._turns.set(turns)
            return turns


class AccountTurns:
    """Turns of accounts, one at a time."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def begin(self, account: str) -> None:
        """Wait for the next turn of an account, which lasts until ``end``."""
        if not self._is_taken:
            self._is_taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the turn was given just before
                self.end()
            raise

    def end(self) -> None:
        """End the turn. The account that has waited longest gets the next one, and then waits behind the others."""
        while self._waiting:
            account, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[account] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._is_taken = False
