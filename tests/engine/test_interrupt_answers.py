"""Answers to interrupts under the ids of the run that ended with them."""

from collections.abc import AsyncIterator, Sequence

import pytest
from ag_ui.core import Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome

from agui_container.engine.engine import Engine
from agui_container.ports import Item
from agui_container.protocol.envelope import Envelope
from tests.engine.doubles import asking, caller, envelopes
from tests.engine.replicas import Replicas, types
from tests.engine.test_replicas import drain_services
from tests.run.test_recorder import wait_until_stored


class InterruptingAgent:
    """An agent that asks one question in each run, and ends without one after the last answer."""

    def __init__(self, *interrupts: str) -> None:
        self._next = dict(zip(("", *interrupts), interrupts, strict=False))

    async def run(self, asked: RunAgentInput) -> AsyncIterator[Item]:
        answered = asked.resume[-1].interrupt_id if asked.resume else ""
        if answered not in self._next:
            yield "thank you"
            return
        outcome = RunFinishedInterruptOutcome(interrupts=[Interrupt(id=self._next[answered], reason="choice")])
        yield RunFinishedEvent(thread_id=asked.thread_id, run_id=asked.run_id, outcome=outcome)


def answer(*interrupts: str, run: str = "r1") -> RunAgentInput:
    return asking(run=run, resume=[{"interruptId": interrupt, "status": "resolved"} for interrupt in interrupts])


async def run_and_store(service: Engine, run_input: RunAgentInput) -> Sequence[Envelope]:
    events = await envelopes(await service.admit(run_input, caller()))
    await wait_until_stored(service)
    return events


async def test_an_answer_under_the_ids_of_the_run_that_asked_is_a_run_of_its_own_on_any_replica() -> None:
    replicas = Replicas()
    here, there = await replicas.start(InterruptingAgent("i")), await replicas.start(InterruptingAgent("i"))
    await run_and_store(here, asking())
    answered = await run_and_store(there, answer("i"))
    assert types(answered)[1] == "TEXT_MESSAGE_START"
    assert await run_and_store(here, answer("i")) == answered
    assert types(await run_and_store(there, asking())) == ["RUN_STARTED", "RUN_FINISHED"]
    await drain_services(here, there)


@pytest.mark.parametrize("count", [1, 2], ids=["one replica", "two"])
async def test_an_answer_to_the_next_question_may_come_under_the_ids_of_the_run_that_asked_first(count: int) -> None:
    replicas, agent = Replicas(), InterruptingAgent("i", "j", "k")
    services = [await replicas.start(agent) for _ in range(count)]
    here, there = services[0], services[-1]
    await run_and_store(here, asking())
    for interrupt in ("i", "j"):
        assert types(await run_and_store(there, answer(interrupt))) == ["RUN_STARTED", "RUN_FINISHED"]
    answered = await run_and_store(here, answer("k"))
    assert types(answered)[1] == "TEXT_MESSAGE_START"
    assert await run_and_store(there, answer("k")) == answered
    await drain_services(*services)


async def test_the_same_answers_are_a_retry_of_a_run_and_others_a_run_of_their_own() -> None:
    service = await Replicas().start(InterruptingAgent("i"))
    told = await run_and_store(service, answer("h", run="r0"))
    await run_and_store(service, asking())
    assert await run_and_store(service, answer("h", run="r0")) == told
    others = await run_and_store(service, answer("i", run="r0"))
    assert others[0].run_id.startswith("r0.")
    assert await run_and_store(service, answer("i", run="r0")) == others
    await drain_services(service)
