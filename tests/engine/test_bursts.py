"""An agent is driven in bursts: what it says without waiting goes out together, and when it waits readers have it."""

import asyncio
import contextlib
import json
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Generator, Sequence
from contextvars import Context, ContextVar, copy_context
from itertools import pairwise
from typing import Self

import pytest
from ag_ui.core import (
    CustomEvent,
    RunAgentInput,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from app.engine.fairness import BURST, EVENT_COST, FairScheduler
from app.engine.pauses import Stepwise
from app.engine.run import Run
from app.ports import Item, RunContext
from tests.engine.doubles import WAIT, asking, caller, eventually, make_service
from tests.requirements import requirement


class Door:
    """Something to wait for, and a count of those who wait."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = 0

    async def passed(self) -> str:
        self.waiting += 1
        await self.open.wait()
        return "passed"


class Watched:
    """A run, and what somebody takes of its text who takes all at once: a list for each time that there was some."""

    def __init__(self, agent: object) -> None:
        self.taken: list[list[str]] = []
        self._more = asyncio.Event()
        run = make_service(agent).start(asking(), caller()).run
        assert isinstance(run, Run)
        assert run._task is not None
        self.run, self.task = run, run._task

    async def begin(self) -> None:
        """Have the run begin, with somebody who takes."""
        reading = asyncio.create_task(self._read())
        self.task.add_done_callback(lambda _: reading.cancel())
        await asyncio.sleep(0)

    async def _read(self) -> None:
        cursor = self.run.log.read()
        cursor.offer(self)
        while True:
            async for batch in cursor:
                if self.run.log.ended:  # its last words go out with its end
                    self.take(batch.data, batch.first)
            await self._more.wait()
            self._more.clear()

    def read_on(self) -> None:
        """As a stream does."""
        self._more.set()

    def take(self, data: Sequence[bytes], _: int) -> bool:
        """As a stream does."""
        deltas = [event["delta"] for event in map(json.loads, data) if "delta" in event]
        if deltas:
            self.taken.append(deltas)
        return True

    async def ended(self) -> None:
        """To its end."""
        async with asyncio.timeout(WAIT):
            await asyncio.wait([self.task])


async def watched(agent: object) -> Watched:
    """An agent at work."""
    run = Watched(agent)
    await run.begin()
    return run


@requirement("speed.bursts")
async def test_readers_have_what_was_said_before_the_agent_waits() -> None:
    door = Door()

    async def agent(_: RunAgentInput, __: RunContext) -> AsyncIterator[Item]:
        yield "a"
        yield "b"
        assert run.taken == []
        yield await door.passed()
        yield "c"

    run = await watched(agent)
    await eventually(lambda: door.waiting)
    assert run.taken == [["a", "b"]]
    door.open.set()
    await run.ended()
    assert run.taken == [["a", "b"], ["passed", "c"]]


@requirement("speed.bursts")
async def test_nothing_holds_what_was_said_while_the_agent_waits() -> None:
    door, said = Door(), list[weakref.ref[TextMessageContentEvent]]()

    async def agent(_: RunAgentInput, __: RunContext) -> AsyncIterator[Item]:
        yield TextMessageStartEvent(message_id="m1")
        for text in ("a", "b", "c"):
            event = TextMessageContentEvent(message_id="m1", delta=text)
            said.append(weakref.ref(event))
            yield event
            del event
        await door.passed()
        yield TextMessageEndEvent(message_id="m1")

    run = await watched(agent)
    await eventually(lambda: door.waiting)
    assert [event() for event in said] == [None, None, None]
    door.open.set()
    await run.ended()
    assert run.taken == [["a", "b", "c"]]


@requirement("speed.bursts")
async def test_an_agent_that_never_waits_is_read_burst_by_burst() -> None:
    async def agent(_: RunAgentInput, __: RunContext) -> AsyncIterator[Item]:
        for number in range(2 * BURST + 1):
            yield str(number)

    run = await watched(agent)
    await run.ended()
    begins = 2 * (EVENT_COST - 1)  # the first item opens the message, and the next shows what goes on with it
    assert [len(deltas) for deltas in run.taken] == [BURST - begins, BURST, 1 + begins]


@requirement("speed.bursts")
async def test_what_comes_from_elsewhere_while_the_agent_waits_wakes_who_reads() -> None:
    door, contexts = Door(), list[RunContext]()

    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        contexts.append(ctx)
        await door.passed()
        yield "never"

    run = Watched(agent)
    cursor = run.run.log.read()
    assert [event.name for event in (await anext(cursor)).types] == ["RUN_STARTED"]
    reading = asyncio.ensure_future(anext(cursor))
    await eventually(lambda: door.waiting)
    contexts[0].emit(CustomEvent(name="a tool's", value=1))
    assert [event.name for event in (await reading).types] == ["CUSTOM"]
    run.run.cancel()
    await run.ended()


@requirement("speed.bursts")
async def test_a_cancellation_reaches_the_agent_where_it_waits() -> None:
    door, seen = Door(), list[str]()

    async def agent(_: RunAgentInput, __: RunContext) -> AsyncIterator[Item]:
        yield "a"
        try:
            await door.passed()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    run = await watched(agent)
    await eventually(lambda: door.waiting)
    run.task.cancel()
    await run.ended()
    assert (run.task.cancelled(), seen, run.taken) == (True, ["cancelled"], [["a"]])


@requirement("speed.bursts")
async def test_an_agent_that_fails_after_it_has_waited_has_said_what_it_said() -> None:
    async def agent(_: RunAgentInput, __: RunContext) -> AsyncIterator[Item]:
        yield "a"
        await asyncio.sleep(0)
        raise KeyError("lost")

    run = await watched(agent)
    await run.ended()
    assert (run.run.status, run.taken) == ("error", [["a"]])


class Plain:
    """An iterator of one's own, which is no generator."""

    def __init__(self) -> None:
        self._left = 3

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        if self._left == 1:
            await asyncio.sleep(0)
        return str(self._left)


class Plainly:
    """An agent that gives one."""

    def run(self, _: RunAgentInput) -> AsyncIterator[Item]:
        return Plain()


@requirement("speed.bursts")
async def test_any_iterator_will_do() -> None:
    run = await watched(Plainly())
    await run.ended()
    assert run.taken == [["2"], ["1", "0"]]


# --- what was begun and goes on ---------------------------------------------------------------------------------------


def begun(work: Awaitable[object]) -> Awaitable[object]:
    """Its first step, up to where it has to wait."""
    step = work.__await__()
    assert isinstance(step, Generator) or hasattr(step, "send")
    return Stepwise(step, waits_for=step.send(None))


async def test_what_was_begun_gives_its_result() -> None:
    door = Door()
    rest = begun(door.passed())
    asyncio.get_running_loop().call_soon(door.open.set)
    assert await rest == "passed"


async def test_what_was_begun_may_handle_a_cancellation() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "done all the same"

    async def waits(rest: Awaitable[object]) -> object:
        return await rest

    task = asyncio.create_task(waits(begun(stubborn())))
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "done all the same"


async def test_what_was_begun_and_is_left_is_closed() -> None:
    left = list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            left.append("closed")

    step = work().__await__()  # held, so that nothing but a close ends it
    waiting = Stepwise(step, waits_for=step.send(None))
    next(waiting)
    waiting.close()
    assert left == ["closed"]


async def test_what_was_begun_finds_no_exception_that_it_has_handled() -> None:
    seen = list[object]()

    async def careful(failing: asyncio.Future[None]) -> None:
        try:
            await failing
        except ConnectionError:
            seen.append("handled")
        seen.append(sys.exc_info()[0])

    failing = asyncio.get_running_loop().create_future()
    rest = begun(careful(failing))
    failing.set_exception(ConnectionError("gone"))
    await rest
    assert seen == ["handled", None]


# --- what goes on in a context of its own -----------------------------------------------------------------------------


async def test_work_within_a_context_sees_it_alone_and_gives_its_result() -> None:
    who = ContextVar[str]("who", default="nobody")
    own = copy_context()

    async def work() -> str:
        token = who.set("the work")
        await asyncio.sleep(0)
        seen.append(who.get())
        who.reset(token)
        return "done"

    seen = list[str]()
    assert await Stepwise(work(), own.run) == "done"
    assert (seen, who.get()) == (["the work"], "nobody")


async def test_work_within_a_context_that_others_enter_while_it_waits_goes_on() -> None:
    own, door = copy_context(), Door()
    task = asyncio.create_task(passed_within(own, door))
    await eventually(lambda: door.waiting == 1)
    own.run(door.open.set)
    assert await task == "passed"


async def passed_within(own: Context, door: Door) -> str:
    return await Stepwise(door.passed(), own.run)


async def test_work_within_a_context_handles_its_own_cancellation_and_timeouts() -> None:
    async def stubborn() -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        try:
            await door.passed()
        except asyncio.CancelledError:
            seen.append(sys.exc_info()[0])
        seen.append(sys.exc_info()[0])
        return "done all the same"

    async def outer() -> str:
        return await Stepwise(stubborn(), copy_context().run)

    seen, door = list[object](), Door()
    task = asyncio.create_task(outer())
    await eventually(lambda: door.waiting == 1)
    task.cancel()
    assert await task == "done all the same"
    assert seen == [asyncio.CancelledError, None]


async def test_what_work_within_a_context_raises_is_raised() -> None:
    async def failing() -> None:
        await asyncio.sleep(0)
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        await Stepwise(failing(), copy_context().run)


async def test_however_many_have_had_their_burst_one_goes_on_per_turn_of_the_loop() -> None:
    scheduler, gone_on = FairScheduler(), list[int]()

    async def one(number: int) -> None:
        await scheduler.yield_turn(number)
        gone_on.append(number)

    leaves, *others = (asyncio.create_task(one(number)) for number in range(4))
    await asyncio.sleep(0)
    leaves.cancel()
    steps = [0]
    async with asyncio.timeout(WAIT):
        while not all(task.done() for task in others):
            await asyncio.sleep(0)
            steps.append(len(gone_on))
    assert gone_on == [1, 2, 3]
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
