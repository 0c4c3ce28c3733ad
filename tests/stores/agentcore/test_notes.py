"""Notes in AgentCore Memory: a process that has just started takes an answer, and no call is run twice."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import Interrupt, ResumeEntry, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome

from agui_container.engine.engine import Engine
from agui_container.main import build_service
from agui_container.ports import Caller, RunInterrupted
from agui_container.ports.records import Change, ThreadNote
from agui_container.ports.store import StoreUnavailable
from agui_container.settings import Settings
from agui_container.testing import EVENT, user_input
from tests.agents.call_tool_agents import CALLS
from tests.stores.agentcore.conftest import MEMORY_ID, Process
from tests.stores.agentcore.doubles import answer, turn
from tests.stores.agentcore.server import Fault, Memory
from tests.stores.doubles import THREAD, A, claim_run, ending, run

QUESTION = ThreadNote("call", "call-1", b'{"question": "\xc3\xa9"}', 4e9)
ANSWER = ThreadNote("call", "call-1", b'"yes"', 4e9, is_settled=True)
FEEDBACK = ThreadNote("feedback", "a1", b"{}", message_id="a1")


async def test_notes_are_there_for_the_next_process(process: Process, service: Memory) -> None:
    store = process()
    await turn(store)
    await store.put_notes(THREAD, [QUESTION])
    await process().put_notes(THREAD, [FEEDBACK])
    assert await process().notes(THREAD, "call", "feedback") == [QUESTION, FEEDBACK]
    assert await store.settle_note(THREAD, ANSWER)
    later = process()
    assert await later.notes(THREAD, "call") == [ANSWER]
    assert not await later.settle_note(THREAD, ANSWER)
    assert len(service.stored_events()) == 4


async def test_questions_of_a_run_are_written_with_its_end_in_one_event(process: Process, service: Memory) -> None:
    store = process()
    await turn(store)
    await claim_run(store, run("r2"), now=2000.0)
    await store.put_notes(THREAD, [QUESTION])
    assert len(service.stored_events()) == 1
    await store.finish(run("r2"), A, [], ending(Change([answer("a2", "Well?")], notes=[FEEDBACK]), 2001.0))
    assert len(service.stored_events()) == 2
    assert await process().notes(THREAD, "call", "feedback") == [QUESTION, FEEDBACK]


async def test_notes_of_deleted_messages_are_gone_for_the_next_process(process: Process) -> None:
    store = process()
    await turn(store)
    await store.put_notes(THREAD, [FEEDBACK, QUESTION])
    await claim_run(store, run("r2"), now=2000.0, change=Change(order=["u1"]))
    await store.finish(run("r2"), A, [], ending(ended_at=2001.0))
    assert await process().notes(THREAD, "call", "feedback") == [QUESTION]


async def test_an_answer_that_cannot_be_written_does_not_count(
    process: Process, service: Memory, pauses: list[int]
) -> None:
    store = process()
    await turn(store)
    await store.put_notes(THREAD, [QUESTION])
    service.down = Fault()
    with pytest.raises(StoreUnavailable):
        await store.settle_note(THREAD, ANSWER)
    service.down = None
    assert await store.settle_note(THREAD, ANSWER)


async def events_of(service: Engine, run_input: RunAgentInput) -> AsyncIterator[object]:
    subscription = await service.admit(run_input, Caller(owner="everybody", request_id="r"))
    async for batch in subscription:
        for data in batch.data:
            yield EVENT.validate_json(data)


async def run_in_a_new_process(run_input: RunAgentInput, agent: object = None) -> list[object]:
    rules = '[{"tool_pattern": "pay", "policy": "ask"}]'
    store = Settings.model_validate({"store": f"agentcore-memory:{MEMORY_ID}"}).store
    settings = Settings(store=store, tools="tests.agents.call_tool_agents:tools", tool_policy=rules)
    engine = build_service(settings, agent)
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
        again = user_input("").model_copy(update={"thread_id": "t1", "messages": [], "resume": [yes]})
        await run_in_a_new_process(again)
        assert CALLS["pay"] == 1


async def test_a_question_of_an_agent_waits_in_the_next_process(service: Memory) -> None:
    async def agent(input: RunAgentInput) -> AsyncIterator[str]:
        yield "Hm."
        raise RunInterrupted([Interrupt(id="colour", reason="choice", message="Which colour?")])

    asks = user_input("go").model_copy(update={"thread_id": "t1"})
    for run_input in (asks, asks.model_copy(update={"run_id": "r2", "messages": []})):
        last = (await run_in_a_new_process(run_input, agent))[-1]
        assert isinstance(last, RunFinishedEvent)
        assert isinstance(last.outcome, RunFinishedInterruptOutcome)
        assert [each.id for each in last.outcome.interrupts] == ["colour"]
