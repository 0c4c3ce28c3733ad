"""A store that does not answer: no call is run without it, and results of finished calls are still sent."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence

import pytest
from ag_ui.core import Interrupt

from agui_container.agents.approvals import interrupt_scope
from agui_container.agents.approvals.approvals import Approval, Approvals
from agui_container.agents.approvals.resume import CUT_OFF, GONE
from agui_container.agents.assistant.goals.goal_store import StoredGoalRecords
from agui_container.agents.tool_calls.tool_call import ModelToolCall
from agui_container.ports import Goal, GoalRecord, GoalStatus
from agui_container.ports.records import InterruptScope, PendingInterrupt, RunKey, StoredGoal
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.memory_interrupts import MemoryInterrupts
from agui_container.stores.memory import MemoryStore
from tests.agents.approval_helpers import START, ApprovalFixture, answer, ask_for_payments, results, text_of
from tests.contexts import run_context
from tests.engine.doubles import WAIT, raises_code

PLACE = InterruptScope(0, "anonymous", "thread")


class FlakyInterrupts(MemoryInterrupts):
    """A store whose operations in ``down`` fail, and whose operations in ``stuck`` wait for ``go``."""

    def __init__(self) -> None:
        super().__init__()
        self.down: set[str] = set()
        self.stuck = False
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    def _answer(self, asked: str) -> None:
        if asked in self.down:
            raise StoreUnavailable(asked)

    async def put(self, place: InterruptScope, held: Sequence[PendingInterrupt]) -> None:
        self._answer("hold")
        if self.stuck:
            self.begun.set()
            await self.go.wait()
        await super().put(place, held)

    async def list_open(self, place: InterruptScope, now: float) -> Sequence[PendingInterrupt]:
        self._answer("held")
        return await super().list_open(place, now)

    async def settle(self, place: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        self._answer("take")
        return await super().settle(place, id, payload, until, now)


class FlakyStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.interrupts: FlakyInterrupts = FlakyInterrupts()


class BrieflyFlaky(FlakyInterrupts):
    """A store that fails the first attempts at each operation, and then works."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = Counter[str]()

    def _answer(self, asked: str) -> None:
        self.attempts[asked] += 1
        if self.attempts[asked] <= FAILURES:
            raise StoreUnavailable(asked)


FAILURES = 3


@pytest.fixture(autouse=True)
def short_outages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that stays away is given up soon."""
    monkeypatch.setattr(interrupt_scope, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(interrupt_scope, "GIVE_UP_SECONDS", 0.05)


def flaky_desk() -> tuple[ApprovalFixture, FlakyInterrupts]:
    fixture, store = ApprovalFixture(), FlakyStore()
    fixture.assistant = fixture.assistant.with_store(store)
    return fixture, store.interrupts


async def test_a_run_waits_for_a_store_that_does_not_answer_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt_scope, "GIVE_UP_SECONDS", WAIT)
    fixture, store = ApprovalFixture(), FlakyStore()
    store.interrupts = interrupts = BrieflyFlaky()
    fixture.assistant = fixture.assistant.with_store(store)
    (interrupt,) = await ask_for_payments(fixture, 5)
    interrupts.attempts.clear()
    items = await fixture.start(resume=[answer(interrupt, approved=True)])
    assert (text_of(items), fixture.paid) == ("The result of pay is paid 5.", [5])
    assert min(interrupts.attempts[asked] for asked in ("hold", "held", "take")) > FAILURES
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == ["paid 5"]


async def test_goals_wait_for_a_store_that_does_not_answer_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt_scope, "GIVE_UP_SECONDS", WAIT)
    records = StoredGoalRecords(lambda: START, BrieflyFlaky())
    goal = GoalRecord(Goal("note", {"type": "object"}), run_id="run")
    await records.carry_over(run_context(), [goal])
    assert list(await records.load(run_context())) == [goal]


@pytest.mark.parametrize("down", ["held", "take"])
async def test_a_call_is_not_run_while_the_store_does_not_answer(down: str) -> None:
    fixture, store = flaky_desk()
    (interrupt,) = await ask_for_payments(fixture, 5)
    store.down = {down}
    with pytest.raises(AppError) as caught:
        await fixture.start(resume=[answer(interrupt, approved=True)])
    assert (caught.value.code, fixture.paid) == (ErrorCode.STORE_UNAVAILABLE, [])
    store.down = set()
    await fixture.start(resume=[answer(interrupt, approved=True)])
    assert fixture.paid == [5]


async def test_a_run_that_cannot_ask_fails_and_asks_nothing() -> None:
    fixture, store = flaky_desk()
    store.down = {"hold", "take"}
    later: list[Awaitable[object]] = []
    with raises_code(ErrorCode.STORE_UNAVAILABLE):
        await fixture.start('call pay {"amount": 5}', ctx=run_context(background=later.append))
    for work in later:
        await work
    assert list(await store.list_open(PLACE, START)) == []


async def test_a_call_that_cannot_be_taken_does_not_cut_off_the_one_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fixture, store = flaky_desk()
    first, second = await ask_for_payments(fixture, 1, 2)
    take = store.settle

    async def only_second(place: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        if id == first.tool_call_id:
            raise StoreUnavailable
        return await take(place, id, payload, until, now)

    monkeypatch.setattr(store, "settle", only_second)
    with pytest.raises(AppError):
        await fixture.start(resume=[answer(first, approved=True), answer(second, approved=True)])
    assert fixture.paid == [2]
    monkeypatch.undo()
    assert results(await fixture.start(resume=[answer(second, approved=True)])) == ["paid 2"]


async def test_a_result_that_cannot_be_remembered_is_told_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    fixture, store = flaky_desk()
    (interrupt,) = await ask_for_payments(fixture, 5)
    store.down = {"hold"}
    items = await fixture.start(resume=[answer(interrupt, approved=True)])
    assert text_of(items) == "The result of pay is paid 5."
    assert "storing call result failed" in caplog.text
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [CUT_OFF]
    assert fixture.paid == [5]


async def test_a_result_is_remembered_though_the_run_is_cancelled_while_it_is_written() -> None:
    fixture, store = flaky_desk()
    (interrupt,) = await ask_for_payments(fixture, 5)
    store.stuck = True
    later: list[Awaitable[object]] = []
    ctx = run_context(background=later.append)
    run = asyncio.create_task(fixture.start(resume=[answer(interrupt, approved=True)], ctx=ctx))
    async with asyncio.timeout(WAIT):
        await store.begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        store.go.set()
        for work in later:
            await work
    store.stuck = False
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == ["paid 5"]


async def test_a_call_that_was_forgotten_meanwhile_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    fixture, store = flaky_desk()
    (interrupt,) = await ask_for_payments(fixture, 5)
    take = store.settle

    async def late(place: InterruptScope, id: str, payload: bytes, until: float, now: float) -> bool:  # noqa: A002 - as in the port
        await store.expire(now + 100_000)
        return await take(place, id, payload, until, now)

    monkeypatch.setattr(store, "settle", late)
    assert results(await fixture.start(resume=[answer(interrupt, approved=True)])) == [GONE]
    assert fixture.paid == []


async def test_stored_approvals_of_another_version_do_not_run(caplog: pytest.LogCaptureFixture) -> None:
    interrupts = MemoryInterrupts()
    approvals, goals = Approvals(lambda: START, interrupts=interrupts), StoredGoalRecords(lambda: START, interrupts)
    waiting = Approval(ModelToolCall("c", "pay", "{}"), [Interrupt(id="i", reason="r")])
    async with approvals.registered_during([waiting], run_context()):
        pass
    await interrupts.put(PLACE, [PendingInterrupt("new", b'{"call": 5}', START + 9)])
    await interrupts.put(PLACE._replace(depth=-1), [PendingInterrupt("new", b'{"goals": 5}', START + 9)])
    assert [held.call.id for held in await approvals.load(("anonymous", "thread", ""))] == ["c"]
    assert list(await goals.load(run_context())) == []
    assert "stored approval unreadable, call will not run call=new" in caplog.text


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
    StoredGoalRecords(goals=Down()).record(run_context(background=later.append), [record])
    await later[0]
    assert "storing goals failed" in caplog.text
