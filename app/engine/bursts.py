"""How an agent is driven: in bursts, as much as it says without waiting.

Rule: readers are offered a burst when the agent has to wait, in the agent's own task, or when it is long enough that
others must have their turn. So what is ready is one write, and a lone event is on its way before anybody else works.
Where events are stored first, they are offered once they are.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from app.engine.log import RunLog
from app.engine.pauses import stepwise
from app.engine.turns import Turns
from app.ports import Item

BURST = 256
"""Events an agent may yield before other runs and /ping get their turn."""

logger = logging.getLogger(__name__)


def iterate(stream: AsyncIterator[Item], emit: Callable[[Item], None], log: RunLog, turns: Turns) -> Awaitable[None]:
    """Emit what an agent yields, up to its end or its run's; to be awaited. Raises what either raises."""
    return stepwise(_emitted(stream, emit, log, turns), log.burst)


async def _emitted(stream: AsyncIterator[Item], emit: Callable[[Item], None], log: RunLog, turns: Turns) -> None:
    left = BURST
    async for item in stream:
        if log.ended:
            logger.warning("the agent went on after the end of its run; the rest is dropped")
            return
        emit(item)
        del item  # the agent may be long about the next one
        left -= 1
        if not left:
            left = BURST
            if not log.ended:
                await turns.next()
