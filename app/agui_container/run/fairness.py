"""Turns on the event loop for runs that never wait: one of them per turn of the loop.

Rule: a new connection waits for one slice of work per turn of the loop, however many runs are at full speed and however
many tool calls and subagents each of them executes. Measured with ``bench/ping.py`` (``--full-speed``, ``--calls``).
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable

BURST = 256
"""Deltas that an agent may yield in succession before other runs and /ping get their turn."""

EVENT_COST = 16
"""Deltas that any other event counts as, because it is expanded, encoded and validated in full."""


class FairScheduler:
    """Round-robin queue of runs. Tasks of one run share its place, so that subagents bring no more turns."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    async def yield_turn(self, run: Hashable) -> None:
        """Wait for the next turn of this run. Tasks of one run continue in the order of their calls."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._give_turn)
        self._waiting.setdefault(run, deque()).append(turn)
        await turn

    def _give_turn(self) -> None:
        run, turns = self._waiting.popitem(last=False)
        turn = turns.popleft()
        if turns:
            self._waiting[run] = turns
        if not turn.done():
            turn.set_result(None)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._give_turn)
