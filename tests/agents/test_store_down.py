"""A store that does not answer: nothing is run without its word, and what has been run is still told."""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest
from ag_ui.core import Interrupt

from app.agents.approvals import Approval, Approvals
from app.agents.goals.kept import KeptGoals
from app.agents.resume import CUT_OFF, GONE
from app.agents.turn import Call
from app.core.errors import AppError, Code
from app.interrupts import MemoryInterrupts
from app.ports import Goal, GoalRecord, GoalStatus
from app.ports.conversation import StoredGoal
from app.ports.records import Held, Place, RunKey
from app.ports.store import StoreUnavailable
from app.stores.memory import MemoryStore
from tests.agents.approval_desk import START, Desk, answer, asked, results, said
from tests.contexts import run_context
from tests.engine.doubles import WAIT

PLACE = Place(0, "anonymous", "thread")


class Flaky(MemoryInterrupts):
    """Does not answer when asked for what is ``down``; what is ``stuck`` waits for ``go``."""

    def __init__(self) -> None:
        super().__init__()
        self.down: set[str] = set()
        self.stuck = False
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    def _answer(self, asked: str) -> None:
        if asked in self.down:
            raise StoreUnavailable(asked)

    async def hold(self, place: Place, held: Sequence[Held]) -> None:
        self._answer("hold")
        if self.stuck:
            self.begun.set()
            await self.go.wait()
        await super().hold(place, held)

    async def held(self, place: Place, now: float) -> Sequence[Held]:
        self._answer("held")
        return await super().held(place, now)

    async def take(self, place: Place, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        self._answer("take")
        return await super().take(place, id, payload, until, now)


class FlakyStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.interrupts: Flaky = Flaky()


def flaky_desk() -> tuple[Desk, Flaky]:
    desk, store = Desk(), FlakyStore()
    desk.assistant = desk.assistant.kept_in(store)
    return desk, store.interrupts


@pytest.mark.parametrize("down", ["held", "take"])
async def test_a_call_is_not_run_while_the_store_does_not_answer(down: str) -> None:
    desk, store = flaky_desk()
    (interrupt,) = await asked(desk, 5)
    store.down = {down}
    with pytest.raises(AppError) as caught:
        await desk.run(resume=[answer(interrupt, approved=True)])
    assert (caught.value.code, desk.paid) == (Code.STORE_UNAVAILABLE, [])
    store.down = set()
    await desk.run(resume=[answer(interrupt, approved=True)])
    assert desk.paid == [5]


async def test_a_run_that_cannot_ask_fails_and_asks_nothing() -> None:
    desk, store = flaky_desk()
    store.down = {"hold", "take"}
    later: list[Awaitable[object]] = []
    with pytest.raises(AppError) as caught:
        await desk.run('call pay {"amount": 5}', ctx=run_context(background=later.append))
    assert caught.value.code is Code.STORE_UNAVAILABLE
    for work in later:
        await work
    assert list(await store.held(PLACE, START)) == []


async def test_a_call_that_cannot_be_taken_does_not_cut_off_the_one_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, store = flaky_desk()
    first, second = await asked(desk, 1, 2)
    take = store.take

    async def only_second(place: Place, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        if id == first.tool_call_id:
            raise StoreUnavailable
        return await take(place, id, payload, until, now)

    monkeypatch.setattr(store, "take", only_second)
    with pytest.raises(AppError):
        await desk.run(resume=[answer(first, approved=True), answer(second, approved=True)])
    assert desk.paid == [2]
    monkeypatch.undo()
    assert results(await desk.run(resume=[answer(second, approved=True)])) == ["paid 2"]


async def test_a_result_that_cannot_be_remembered_is_told_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    desk, store = flaky_desk()
    (interrupt,) = await asked(desk, 5)
    store.down = {"hold"}
    items = await desk.run(resume=[answer(interrupt, approved=True)])
    assert said(items) == "The result of pay is paid 5."
    assert "its result is not remembered" in caplog.text
    assert results(await desk.run(resume=[answer(interrupt, approved=True)])) == [CUT_OFF]
    assert desk.paid == [5]


async def test_a_result_is_remembered_though_the_run_is_cancelled_while_it_is_written() -> None:
    desk, store = flaky_desk()
    (interrupt,) = await asked(desk, 5)
    store.stuck = True
    later: list[Awaitable[object]] = []
    ctx = run_context(background=later.append)
    run = asyncio.create_task(desk.run(resume=[answer(interrupt, approved=True)], ctx=ctx))
    async with asyncio.timeout(WAIT):
        await store.begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        store.go.set()
        for work in later:
            await work
    store.stuck = False
    assert results(await desk.run(resume=[answer(interrupt, approved=True)])) == ["paid 5"]


async def test_a_call_that_was_forgotten_meanwhile_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, store = flaky_desk()
    (interrupt,) = await asked(desk, 5)
    take = store.take

    async def late(place: Place, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        await store.expire(now + 100_000)
        return await take(place, id, payload, until, now)

    monkeypatch.setattr(store, "take", late)
    assert results(await desk.run(resume=[answer(interrupt, approved=True)])) == [GONE]
    assert desk.paid == []


async def test_what_another_version_has_written_is_not_run(caplog: pytest.LogCaptureFixture) -> None:
    interrupts = MemoryInterrupts()
    approvals, goals = Approvals(lambda: START, interrupts=interrupts), KeptGoals(lambda: START, interrupts)
    waiting = Approval(Call("c", "pay", "{}"), [Interrupt(id="i", reason="r")])
    async with approvals.holding([waiting], run_context()):
        pass
    await interrupts.hold(PLACE, [Held("new", b'{"call": 5}', START + 9)])
    await interrupts.hold(PLACE._replace(depth=-1), [Held("new", b'{"goals": 5}', START + 9)])
    assert [held.call.id for held in await approvals.held(("anonymous", "thread", ""))] == ["c"]
    assert list(await goals.held(run_context())) == []
    assert "call=<new> | what waits cannot be read, and is not run" in caplog.text


async def test_goals_that_cannot_be_written_down_cost_the_run_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Down:
        async def declare(self, run: RunKey, goals: Sequence[StoredGoal]) -> None:
            raise StoreUnavailable

        async def conclude(
            self, run: RunKey, index: int, status: GoalStatus, now: float, *, result: bytes | None = None
        ) -> None:
            raise NotImplementedError

    later: list[Awaitable[object]] = []
    record = GoalRecord(Goal("note", {"type": "object"}), run_id="run")
    KeptGoals(goals=Down()).record(run_context(background=later.append), [record])
    await later[0]
    assert "how its goals stand is not written down" in caplog.text
