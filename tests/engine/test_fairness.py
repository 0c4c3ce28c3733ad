"""Runs that never wait take turns, and so do requests."""

import asyncio
from itertools import pairwise

import pytest

from agui_container.engine.run.fairness import FairScheduler, RequestTurns
from tests.engine.doubles import WAIT
from tests.requirements import requirement


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


async def test_callers_take_turns_however_many_runs_each_has() -> None:
    scheduler, gone_on = FairScheduler(), list[str]()

    async def one(account: str, run: int, turns: int) -> None:
        for _ in range(turns):
            await scheduler.yield_turn((account, run), account)
            gone_on.append(f"{account}{run}")

    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as tasks:
        for run in range(3):
            tasks.create_task(one("many", run, 2))
        tasks.create_task(one("few", 0, 3))
    assert gone_on == ["many0", "few0", "many1", "few0", "many2", "few0", "many0", "many1", "many2"]


async def begin(turns: RequestTurns, account: str, begun: list[str]) -> None:
    await turns.wait(account)
    begun.append(account)


@requirement("caller.requests_in_turn")
async def test_one_request_begins_per_turn_of_the_loop_and_callers_take_turns() -> None:
    turns, begun, steps = RequestTurns(), list[str](), [0]
    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as tasks:
        for account in ["many"] * 5 + ["few"] * 2:
            tasks.create_task(begin(turns, account, begun))
        while len(begun) < 7:
            await asyncio.sleep(0)
            steps.append(len(begun))
    assert begun == ["many", "many", "few", "many", "few", "many", "many"]
    assert max(later - earlier for earlier, later in pairwise(steps)) == 1


async def test_a_request_that_arrives_alone_does_not_wait() -> None:
    turns = RequestTurns()
    for _ in range(3):
        with pytest.raises(StopIteration):
            turns.wait("one").send(None)
        await asyncio.sleep(0)


async def test_a_cancelled_request_leaves_its_turn_to_the_next_one() -> None:
    turns, begun = RequestTurns(), list[str]()
    _, cancelled, other = (asyncio.create_task(begin(turns, account, begun)) for account in ("one", "two", "three"))
    await asyncio.sleep(0)
    cancelled.cancel()
    async with asyncio.timeout(WAIT):
        await other
    assert begun == ["one", "three"]
