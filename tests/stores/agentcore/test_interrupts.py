"""Approvals in AgentCore Memory: a process that has just started takes the answer, and nothing is run twice."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import Interrupt, ResumeEntry, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome

from agui_container.engine.engine import Engine
from agui_container.engine.persistence.entries import answers_in, entries_of, keep_entries
from agui_container.main import build_service
from agui_container.ports import Caller
from agui_container.ports.records import InterruptScope, PendingInterrupt, RunKey
from agui_container.ports.store import StoreUnavailable
from agui_container.settings import Settings
from agui_container.testing import EVENT, user_input
from tests.agents.call_tool_agents import CALLS
from tests.stores.agentcore.conftest import MEMORY_ID, Process
from tests.stores.agentcore.doubles import turn
from tests.stores.agentcore.server import Fault, Memory

SCOPE = InterruptScope(0, "owner", "t1")
UNTIL, NOW = 4e9, 2e9
QUESTION = PendingInterrupt("call-1", b'{"question": "\xc3\xa9"}', UNTIL)


async def test_a_question_and_its_answer_are_there_for_the_next_process(process: Process) -> None:
    store = process()
    await turn(store)
    await store.interrupts.put(SCOPE, [QUESTION])
    assert await process().interrupts.list_open(SCOPE, NOW) == [QUESTION]
    assert await store.interrupts.settle(SCOPE, "call-1", b'"yes"', UNTIL, NOW)
    settled = PendingInterrupt("call-1", b'"yes"', UNTIL, is_settled=True)
    later = process()
    assert await later.interrupts.list_open(SCOPE, NOW) == [settled]
    assert not await later.interrupts.settle(SCOPE, "call-1", b'"again"', UNTIL, NOW)


async def test_an_answer_is_beside_its_question_for_the_next_process(process: Process) -> None:
    store, run = process(), RunKey("owner", "t1", "r2")
    await turn(store)
    resume = [ResumeEntry(interrupt_id="a", status="cancelled")]
    answered = user_input("").model_copy(update={"resume": resume})
    answers = answers_in(answered, [Interrupt(id="a", reason="place")], None)
    await keep_entries(store.interrupts, run, "begin", answers)
    kept = [{"runId": "r2", "interruptId": "a", "reason": "place", "status": "cancelled"}]
    assert await entries_of(process().interrupts, run.thread, NOW) == kept


async def test_of_two_answers_at_once_one_counts_and_one_is_written(process: Process, service: Memory) -> None:
    store = process()
    await store.interrupts.put(SCOPE, [QUESTION])
    answers = [store.interrupts.settle(SCOPE, "call-1", f'"{n}"'.encode(), UNTIL, NOW) for n in range(2)]
    assert await asyncio.gather(*answers) == [True, False]
    assert service.request_counts()["CreateEvent"] == 2


async def test_an_answer_that_cannot_be_written_does_not_count(
    process: Process, service: Memory, pauses: list[int]
) -> None:
    store = process()
    await store.interrupts.put(SCOPE, [QUESTION])
    service.down = Fault()
    with pytest.raises(StoreUnavailable):
        await store.interrupts.settle(SCOPE, "call-1", b'"yes"', UNTIL, NOW)
    service.down = None
    assert await store.interrupts.settle(SCOPE, "call-1", b'"yes"', UNTIL, NOW)


async def test_a_question_that_cannot_be_written_stays_in_memory_with_a_warning(
    process: Process, service: Memory, pauses: list[int]
) -> None:
    store = process()
    await turn(store)
    service.down = Fault()
    await store.interrupts.put(SCOPE, [QUESTION])
    assert await store.interrupts.list_open(SCOPE, NOW) == [QUESTION]
    assert [warning.name for warning in store.take_warnings(SCOPE.thread)] == ["interrupt.unwritten"]


async def test_a_large_question_comes_back_whole(process: Process) -> None:
    large = PendingInterrupt("call-1", b'"' + b"x" * 250_000 + b'"', UNTIL)
    await process().interrupts.put(SCOPE, [large])
    assert await process().interrupts.list_open(SCOPE, NOW) == [large]


async def test_a_deleted_thread_takes_its_questions_with_it(process: Process) -> None:
    store = process()
    await turn(store)
    await store.interrupts.put(SCOPE, [QUESTION])
    await store.threads.delete(SCOPE.thread)
    assert await store.interrupts.list_open(SCOPE, NOW) == []
    assert await process().interrupts.list_open(SCOPE, NOW) == []


async def events_of(service: Engine, run_input: RunAgentInput) -> AsyncIterator[object]:
    subscription = await service.admit(run_input, Caller(owner="everybody", request_id="r"))
    async for batch in subscription:
        for data in batch.data:
            yield EVENT.validate_json(data)


async def run_in_a_new_process(run_input: RunAgentInput) -> list[object]:
    """Serve one run, with nothing in memory before it and nothing after it."""
    rules = '[{"tool_pattern": "pay", "policy": "ask"}]'
    store = Settings.model_validate({"store": f"agentcore-memory:{MEMORY_ID}"}).store
    settings = Settings(store=store, tools="tests.agents.call_tool_agents:tools", tool_policy=rules)
    engine = build_service(settings)
    await engine.open()
    try:
        return [event async for event in events_of(engine, run_input)]
    finally:
        await engine.drain(0)
        await engine.aclose()


async def test_an_approval_survives_the_process_and_its_call_is_run_once(service: Memory) -> None:
    CALLS.clear()
    asked = await run_in_a_new_process(user_input('call pay {"amount": 5}').model_copy(update={"thread_id": "t1"}))
    last = asked[-1]
    assert isinstance(last, RunFinishedEvent)
    assert isinstance(last.outcome, RunFinishedInterruptOutcome)
    yes = ResumeEntry(interrupt_id=last.outcome.interrupts[0].id, status="resolved", payload={"approved": True})
    for _ in range(2):  # the second answer is a retry, in a process of its own
        answer = user_input("").model_copy(update={"thread_id": "t1", "messages": [], "resume": [yes]})
        await run_in_a_new_process(answer)
        assert CALLS["pay"] == 1
