"""Turns on the event loop for runs that never wait, and for requests: one of each kind per turn of the loop.

Rule: a new connection waits for one slice of work per turn of the loop, however many runs are at full speed and however
many tool calls and subagents each of them executes. Callers take turns, and then the runs of each. A caller's request
waits for one request of each other caller. Measured with ``bench/ping.py`` (``--full-speed``, ``--calls``) and
``bench/two_callers.py``.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable

BURST = 256
"""Deltas that an agent may yield in succession before other runs and /ping get their turn."""

EVENT_COST = 16
"""Deltas that any other event counts as, because it is expanded, encoded and validated in full."""


class FairScheduler:
    """Round-robin queue of callers, and of their runs, that have had their slice of work.

    Runs of one caller share the caller's place in the queue, and tasks of one run share the run's place. So a caller
    with many runs and a run with many subagents get no more turns than others.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, OrderedDict[Hashable, deque[asyncio.Future[None]]]] = OrderedDict()

    async def yield_turn(self, run: Hashable, account: str = "") -> None:
        """Wait for the next turn of this run of a caller. Tasks of one run continue in the order of their calls."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._give_turn)
        self._waiting.setdefault(account, OrderedDict()).setdefault(run, deque()).append(turn)
        await turn

    def _give_turn(self) -> None:
        account, runs = self._waiting.popitem(last=False)
        run, turns = runs.popitem(last=False)
        turn = turns.popleft()
        if turns:
            runs[run] = turns
        if runs:
            self._waiting[account] = runs
        if not turn.done():
            turn.set_result(None)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._give_turn)


class RequestTurns:
    """Round-robin queue of callers with requests, messages of sockets and gRPC calls that have not begun.

    A request that arrives alone begins immediately.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._is_taken = False
        """True if a request has begun in this turn of the loop."""

    async def wait(self, account: str) -> None:
        """Wait until a request of this account may begin."""
        if not self.take():
            await self.reserve(account)

    def take(self) -> bool:
        """Take this turn of the loop. Returns False if a request has begun in it, or if others wait."""
        if self._is_taken:
            return False
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._give_turn)
        return True

    def reserve(self, account: str) -> asyncio.Future[None]:
        """Return a later turn of this account. It is done as soon as the request may begin."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(account, deque()).append(turn)
        return turn

    def _give_turn(self) -> None:
        self._is_taken = False
        while self._waiting and not self._is_taken:
            account, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[account] = turns
            if not turn.done():  # a cancelled request leaves its turn to the next one
                turn.set_result(None)
                self.take()
