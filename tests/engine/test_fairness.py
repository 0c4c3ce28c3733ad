"""Runs that never wait take turns."""

import asyncio
from itertools import pairwise

from app.engine.turns import Turns
from tests.engine.doubles import WAIT


async def test_one_run_continues_per_turn_of_the_loop_however_many_wait() -> None:
    turns, continued = Turns(), list[int]()

    async def one(number: int) -> None:
        await turns.next()
        continued.append(number)

    cancelled, *others = (asyncio.create_task(one(number)) for number in range(4))
    await asyncio.sleep(0)
    cancelled.cancel()
    steps = [0]
    async with asyncio.timeout(WAIT):
        while not all(task.done() for task in others):
            await asyncio.sleep(0)
            steps.append(len(continued))
    assert continued == [1, 2, 3]
    assert max(later - earlier for earlier, later in pairwise(steps)) == 1
