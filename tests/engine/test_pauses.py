"""Work that is begun where it is asked for, and goes on elsewhere if it has to wait."""

import asyncio

import pytest

from app.engine.pauses import begun
from tests.requirements import requirement


@requirement("speed.at-once")
async def test_work_that_waits_for_nothing_is_done_at_once() -> None:
    done = list[str]()

    async def work() -> None:
        done.append("all of it")

    assert begun(work()) is None
    assert done == ["all of it"]


@requirement("speed.at-once")
async def test_work_that_has_to_wait_goes_on_in_a_task_and_waits_for_what_it_waited_for() -> None:
    opened, done = asyncio.Event(), list[str]()

    async def work() -> str:
        done.append("before")
        await opened.wait()
        done.append("behind")
        return "it"

    left = begun(work())
    assert left is not None
    task = asyncio.create_task(left)
    await asyncio.sleep(0)
    assert done == ["before"]
    opened.set()
    assert await task == "it"
    assert done == ["before", "behind"]


@requirement("speed.at-once")
async def test_what_work_raises_at_once_is_raised_where_it_is_begun() -> None:
    async def work() -> None:
        raise RuntimeError("at once")

    with pytest.raises(RuntimeError, match="at once"):
        begun(work())
