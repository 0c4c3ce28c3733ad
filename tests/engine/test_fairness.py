"""Runs that never wait take turns."""

import asyncio
from itertools import pairwise

from agui_container.engine.run.fairness import FairScheduler
from tests.engine.doubles import WAIT


async def test_one_run_continues_per_turn_of_the_loop_however_many_wait() -> None:
    scheduler, continued = FairScheduler(), list[int]()

    async def one(number: int) -> None:
        await scheduler.yield_turn(number)
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


async def test_tasks_of_one_run_share_its_place_in_the_queue() -> None:
    scheduler, gone_on = FairScheduler(), list[str]()

    async def one(run: str, number: int) -> None:
        await scheduler.yield_turn(run)
        gone_on.append(f"{run}{number}")

    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as tasks:
        for run, number in [("many", 1), ("many", 2), ("many", 3), ("few", 1), ("few", 2)]:
            tasks.create_task(one(run, number))
    assert gone_on == ["many1", "few1", "many2", "few2", "many3"]
