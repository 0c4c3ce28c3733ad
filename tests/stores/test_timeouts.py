"""Approvals in every store: one replica asks, another one answers, once."""

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import replace

from ag_ui.core import Interrupt, Message, RunFinishedEvent, TextPart, ToolCallResultEvent, ToolMessage, UserMessage
from msgspec import structs

from agui_container.agents.approvals.approvals import Approval, ApprovalAnswer, Approvals
from agui_container.agents.assistant.goals.goal_store import LIFETIME, StoredGoalRecords
from agui_container.agents.tool_calls.tool_call import ModelToolCall, ToolResult
from agui_container.ports import Goal, GoalRecord, GoalStatus, Suspension
from agui_container.ports.records import InterruptScope, ThreadKey
from agui_container.ports.store import Store
from tests.agents.approval_helpers import START, ApprovalFixture, answer, ask_for_payments, interrupts, results
from tests.contexts import of_type, run_context, run_input
from tests.stores.conftest import Replica
from tests.stores.doubles import claim_run, run

THREAD = ("anonymous", "thread", "")
KEY = run("run", "thread", "anonymous")
NOTE = Goal("note", {"type": "object", "properties": {"text": {"const": None}}}, "A note.")


def fixture_on(store: Store) -> ApprovalFixture:
    """A fixture whose assistant keeps what waits there."""
    fixture = ApprovalFixture()
    fixture.assistant = fixture.assistant.with_store(store)
    return fixture


def approvals_on(store: Store, depth: int = 0) -> Approvals:
    return Approvals(lambda: START).with_store(store.interrupts, depth)


# --- approvals --------------------------------------------------------------------------------------------------------


async def test_all_of_an_approval_is_known_to_another_replica(replica: Replica) -> None:
    one, other = await replica(), await replica()
    question = Interrupt(id="i", reason="r", metadata={"none": None}, subagent_run_id="part")
    messages: list[Message] = [
        UserMessage(id="u", content="\0 do"),
        ToolMessage(id="t", tool_call_id="c", content=[TextPart(text="✓")]),
    ]
    suspension = Suspension([question], "part", messages)
    suspended = Approval(ModelToolCall("c2", "delegate", "{}"), [question], ["beside"], suspension)
    denied = ApprovalAnswer(approved=False, reason="no", editedArgs={"none": None})
    decided = Approval(ModelToolCall("c1", "pay", '{"amount": 5}'), [question], [], answer=denied)
    async with approvals_on(one).registered_during([suspended, decided], run_context()):
        pass
    paid = ToolResult([TextPart(text="paid")], {"durationMs": 3})
    settled = await approvals_on(one).claim(THREAD, decided, paid)
    assert list(await approvals_on(other).load(THREAD)) == [settled, suspended]
    assert list(await approvals_on(other, depth=1).load(THREAD)) == []


async def test_a_settled_result_without_metadata_is_read_as_it_was(store: Store) -> None:
    fixture = fixture_on(store)
    (interrupt,) = interrupts(await fixture.send('call pay {"amount": 5}'))
    first = await fixture.start(resume=[answer(interrupt, approved=False)])
    (held,) = await store.interrupts.list_open(InterruptScope(0, *THREAD), START)
    older = {name: value for name, value in json.loads(held.payload).items() if name != "metadata"}
    await store.interrupts.put(InterruptScope(0, *THREAD), [structs.replace(held, payload=json.dumps(older).encode())])
    again = await fixture.start(resume=[answer(interrupt, approved=False)])
    assert results(again) == results(first)
    assert [event.metadata for event in of_type(again, ToolCallResultEvent)] == [None]


async def test_a_question_of_one_replica_is_answered_through_another(replica: Replica) -> None:
    one, other = fixture_on(await replica()), fixture_on(await replica())
    (interrupt,) = await ask_for_payments(one, 5)
    assert results(await other.start(resume=[answer(interrupt, approved=True)])) == ["paid 5"]
    assert results(await one.start(resume=[answer(interrupt, approved=True)])) == ["paid 5"]
    assert (one.paid, other.paid) == ([], [5])


async def test_of_answers_at_once_on_several_replicas_one_runs_each_call(replica: Replica) -> None:
    desks = [fixture_on(await replica()) for _ in range(3)]
    questions = await ask_for_payments(desks[0], 1, 2)
    yes = [answer(interrupt, approved=True) for interrupt in questions]
    async with asyncio.TaskGroup() as group:
        for fixture in desks:
            for _ in range(2):
                group.create_task(fixture.start(resume=yes))
    assert sorted(amount for fixture in desks for amount in fixture.paid) == [1, 2]
    assert results(await desks[0].start(resume=yes)) == ["paid 1", "paid 2"]


async def test_a_run_that_fails_at_its_end_leaves_no_question(store: Store) -> None:
    fixture = fixture_on(store)
    later: list[Awaitable[object]] = []
    stream = fixture.assistant.run(run_input('call pay {"amount": 5}'), run_context(background=later.append))
    async for item in stream:
        if isinstance(item, RunFinishedEvent):
            break
    (held,) = await approvals_on(store).load(THREAD)
    assert interrupts([item]) == list(held.interrupts)
    await stream.aclose()
    for work in later:
        await work
    assert list(await approvals_on(store).load(THREAD)) == []


async def test_an_answer_that_was_quicker_than_the_failure_of_the_run_that_asked_stands(store: Store) -> None:
    approvals, later = approvals_on(store), list[Awaitable[object]]()
    waiting = Approval(ModelToolCall("c", "pay", "{}"), [Interrupt(id="i", reason="r")], [])
    end = approvals.registered_during([waiting], run_context(background=later.append))
    await end.__aenter__()
    settled = await approvals.claim(THREAD, waiting, ToolResult("done"))
    await end.__aexit__(KeyError, KeyError(), None)
    for work in later:
        await work
    assert list(await approvals.load(THREAD)) == [settled]


async def test_an_approval_can_be_abandoned_for_an_hour_more_and_then_is_forgotten(store: Store) -> None:
    now = [START]
    approvals = Approvals(lambda: now[0]).with_store(store.interrupts, 0)
    async with approvals.registered_during([Approval(ModelToolCall("c", "pay", "{}"), [])], run_context()):
        pass
    now[0] += 7199
    assert len(await approvals.load(THREAD)) == 1
    now[0] += 1
    assert len(await approvals.load(THREAD)) == 0
    await store.interrupts.expire(now[0])
    now[0] = START
    assert len(await approvals.load(THREAD)) == 0


# --- goals ------------------------------------------------------------------------------------------------------------


async def test_the_goals_of_a_turn_are_taken_up_by_another_replica(replica: Replica) -> None:
    one, other = [StoredGoalRecords(lambda: START).with_store(await replica()) for _ in range(2)]
    first, second = (replace(run_context(), run_id=run_id) for run_id in ("r1", "r2"))
    standing = [GoalRecord(NOTE, GoalStatus.ACHIEVED, {"text": None}, "r1", 3), GoalRecord(NOTE, run_id="r1")]
    assert list(await one.load(first)) == []
    await one.carry_over(first, standing)
    assert list(await other.load(second)) == standing
    await other.carry_over(second, ())
    await one.carry_over(first, standing)  # late: it is no longer its turn
    assert list(await one.load(first)) == []


async def test_the_goals_of_a_turn_are_forgotten_after_an_hour(store: Store) -> None:
    now = [START]
    goals, ctx = StoredGoalRecords(lambda: now[0]).with_store(store), run_context()
    await goals.carry_over(ctx, [GoalRecord(NOTE)])
    now[0] += LIFETIME - 1
    assert list(await goals.load(ctx)) == [GoalRecord(NOTE)]
    now[0] += 1
    assert list(await goals.load(ctx)) == []


async def test_records_of_goals_may_be_written_in_any_order_and_are_part_of_the_thread(store: Store) -> None:
    await claim_run(store, KEY)
    later: list[Awaitable[object]] = []
    goals, ctx = StoredGoalRecords(lambda: START).with_store(store), run_context(background=later.append)
    pending = [GoalRecord(NOTE, run_id="run"), GoalRecord(replace(NOTE, type="sum"), run_id="run", index=1)]
    goals.record(ctx, pending)
    goals.record(ctx, [replace(pending[0], status=GoalStatus.ACHIEVED, data={"a": 1}), pending[1]])
    goals.record(ctx, [replace(record, status=GoalStatus.FAILED) for record in pending])
    for work in (later[1], later[2], later[0]):
        await work
    delta = await store.threads.changes(ThreadKey(*THREAD[:2]))
    assert delta is not None
    assert [(goal.type, goal.status, goal.result) for goal in delta.goals or ()] == [
        ("note", GoalStatus.ACHIEVED, b'{"a":1}'),
        ("sum", GoalStatus.FAILED, None),
    ]


async def test_a_goal_that_goes_on_in_another_run_stays_that_of_the_run_that_declared_it(store: Store) -> None:
    await claim_run(store, KEY)
    later: list[Awaitable[object]] = []
    goals, ctx = StoredGoalRecords(lambda: START).with_store(store), run_context(background=later.append)
    goals.record(ctx, [GoalRecord(NOTE, run_id="run")])
    goals.record(replace(ctx, run_id="r2"), [GoalRecord(NOTE, GoalStatus.ACHIEVED, {}, "run")])
    for work in later:
        await work
    delta = await store.threads.changes(ThreadKey(*THREAD[:2]))
    assert delta is not None
    assert [(goal.run_id, goal.status) for goal in delta.goals or ()] == [("run", GoalStatus.ACHIEVED)]
