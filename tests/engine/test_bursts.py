"""An agent is driven in bursts: what it says without waiting goes out together, and when it waits readers have it."""

import asyncio
import contextlib
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextvars import Context, ContextVar, copy_context
from itertools import pairwise
from typing import Self, cast

import pytest
from ag_ui.core import TextMessageContentEvent

from app.engine.bursts import BURST, iterate
from app.engine.log import Budget, RunLog
from app.engine.pauses import stepwise
from app.engine.turns import Turns
from app.ports import Item
from tests.engine.doubles import WAIT, eventually
from tests.requirements import requirement

Agent = Callable[[], AsyncIterator[Item]]


class Door:
    """Something to wait for, and a count of those who wait."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = 0

    async def passed(self) -> str:
        self.waiting += 1
        await self.open.wait()
        return "passed"


async def iterated(stream: AsyncIterator[Item], emit: Callable[[Item], None], log: RunLog) -> None:
    await iterate(stream, emit, log, Turns())


async def driven(agent: Agent) -> tuple[RunLog, list[list[str]], asyncio.Task[None]]:
    """An agent at work, and the batches that somebody takes who takes all at once."""
    log, taken = RunLog("r1", Budget(1 << 30, 1 << 30)), list[list[str]]()
    cursor = log.read()

    def take(data: Sequence[bytes], _: int) -> bool:
        taken.append([each.decode() for each in data])
        return True

    cursor.offer(take)
    waiting = asyncio.ensure_future(anext(cursor))
    await asyncio.sleep(0)
    task = asyncio.create_task(iterated(agent(), lambda item: log.append("x", str(item).encode()), log))  # type: ignore[arg-type]
    task.add_done_callback(lambda _: waiting.cancel())
    return log, taken, task


@requirement("speed.bursts")
async def test_readers_have_what_was_said_before_the_agent_waits() -> None:
    door = Door()

    async def agent() -> AsyncIterator[Item]:
        yield "a"
        yield "b"
        assert taken == []
        yield str(await door.passed())
        yield "c"

    _, taken, task = await driven(agent)
    await eventually(lambda: door.waiting)
    assert taken == [["a", "b"]]
    door.open.set()
    await task
    assert taken == [["a", "b"], ["passed", "c"]]


@requirement("speed.bursts")
async def test_nothing_holds_what_was_said_while_the_agent_waits() -> None:
    door, said = Door(), list[weakref.ref[TextMessageContentEvent]]()

    async def agent() -> AsyncIterator[Item]:
        event = TextMessageContentEvent(message_id="m1", delta="a")
        said.append(weakref.ref(event))
        yield event
        del event
        await door.passed()

    _, _, task = await driven(agent)
    await eventually(lambda: door.waiting)
    assert said[0]() is None
    door.open.set()
    await task


@requirement("speed.bursts")
async def test_an_agent_that_never_waits_is_read_burst_by_burst() -> None:
    async def agent() -> AsyncIterator[Item]:
        for number in range(2 * BURST + 1):
            yield str(number)

    _, taken, task = await driven(agent)
    await task
    assert [len(batch) for batch in taken] == [BURST, BURST, 1]


@requirement("speed.bursts")
async def test_what_comes_from_elsewhere_while_the_agent_waits_wakes_who_reads() -> None:
    log, door = RunLog("r1", Budget(1 << 30, 1 << 30)), Door()

    async def agent() -> AsyncIterator[Item]:
        await door.passed()
        yield "never"

    reading = asyncio.ensure_future(anext(log.read()))
    task = asyncio.create_task(iterated(agent(), lambda _: None, log))
    await eventually(lambda: door.waiting)
    log.append("x", b"a tool's")  # type: ignore[arg-type]
    assert (await reading).data == [b"a tool's"]
    task.cancel()
    await asyncio.wait([task])


@requirement("speed.bursts")
async def test_a_cancellation_reaches_the_agent_where_it_waits() -> None:
    door, seen = Door(), list[str]()

    async def agent() -> AsyncIterator[Item]:
        yield "a"
        try:
            await door.passed()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    _, taken, task = await driven(agent)
    await eventually(lambda: door.waiting)
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), seen, taken) == (True, ["cancelled"], [["a"]])


@requirement("speed.bursts")
async def test_what_an_agent_raises_after_it_has_waited_is_raised() -> None:
    async def agent() -> AsyncIterator[Item]:
        yield "a"
        await asyncio.sleep(0)
        raise KeyError("lost")

    _, taken, task = await driven(agent)
    with pytest.raises(KeyError):
        await task
    assert taken == [["a"]]


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


@requirement("speed.bursts")
async def test_any_iterator_will_do() -> None:
    _, taken, task = await driven(Plain)
    await task
    assert taken == [["2"], ["1", "0"]]


# --- what was begun and goes on ---------------------------------------------------------------------------------------


def begun(work: Awaitable[object]) -> Awaitable[object]:
    """Its first step, up to where it has to wait."""
    step = work.__await__()
    assert isinstance(step, Generator) or hasattr(step, "send")
    return stepwise(step, waits_for=step.send(None))


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
    waiting = cast("Generator[object, None, None]", stepwise(step, waits_for=step.send(None)))
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
    assert await stepwise(work(), own.run) == "done"
    assert (seen, who.get()) == (["the work"], "nobody")


async def test_work_within_a_context_that_others_enter_while_it_waits_goes_on() -> None:
    own, door = copy_context(), Door()
    task = asyncio.create_task(passed_within(own, door))
    await eventually(lambda: door.waiting == 1)
    own.run(door.open.set)
    assert await task == "passed"


async def passed_within(own: Context, door: Door) -> str:
    return await stepwise(door.passed(), own.run)


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
        return await stepwise(stubborn(), copy_context().run)

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
        await stepwise(failing(), copy_context().run)


async def test_however_many_have_had_their_burst_one_goes_on_per_turn_of_the_loop() -> None:
    turns, gone_on = Turns(), list[int]()

    async def one(number: int) -> None:
        await turns.next()
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
