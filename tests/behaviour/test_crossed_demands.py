"""Demands of a caller on tool calls, where another client answers and demands nothing."""

import pytest

from agui_container.agents.as_agent import as_agent
from agui_container.agents.assistant.assistant import Assistant
from agui_container.agents.assistant.subagents import Subagent
from agui_container.models.offline import OfflineModel
from tests.behaviour.client import Client, outcome, text
from tests.behaviour.conversations import answer, interrupts
from tests.behaviour.subagents import paid, pay
from tests.conftest import Serve
from tests.engine.doubles import Json, ask
from tests.requirements import requirement

ASK_ALL: Json = {"approvals": {"ask": "all"}}
CANCEL: Json = {"approvals": {"ask": "all", "onDenial": "cancel"}}
PAY = 'call pay {"amount": 5}'


def delegating(agent: object) -> Assistant:
    """An assistant that can delegate to this agent, and pay."""
    paid.clear()
    return Assistant(OfflineModel(), (Subagent("delegate", "Helps.", as_agent(agent, "agent")), pay))


def worker() -> Assistant:
    """An assistant that pays without asking."""
    return Assistant(OfflineModel(), (pay,))


async def approve(client: Client, events: list[Json]) -> list[Json]:
    """Approve the one call that waits, without a demand of one's own. Nothing has been paid for unasked until then."""
    (interrupt,) = interrupts(events)
    return await client.run(
        ask(run=f"approve-{interrupt['id']}", messages=[], resume=[answer(interrupt, approved=True)])
    )


def asked_for(events: list[Json]) -> list[str]:
    """Return the tools that the interrupts of a run ask for."""
    return [interrupt["metadata"]["toolName"] for interrupt in interrupts(events)]


@requirement("sub.asks")
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("over", ["sse then websocket", "websocket then sse"])
async def test_every_call_of_a_turn_is_asked_for_as_its_caller_demands_whoever_answers(
    serve: Serve, depth: int, over: str
) -> None:
    agent = worker()
    for _ in range(depth):
        agent = delegating(agent)
    asking, answering = (await serve(agent))[:: 1 if over.startswith("sse") else -1]
    events = await asking.run(ask(text="delegate " * depth + PAY, forwardedProps=ASK_ALL))
    for name in [*["delegate"] * depth, "pay"]:
        assert (asked_for(events), paid) == ([name], [])
        events = await approve(answering, events)
    assert (outcome(events), paid) == ("success", [5])


@requirement("sub.asks")
async def test_a_denial_by_another_client_ends_a_turn_whose_caller_demands_that(serve: Serve) -> None:
    sse, websocket = await serve(delegating(worker()))
    (interrupt,) = interrupts(await sse.run(ask(text=PAY, forwardedProps=CANCEL)))
    events = await websocket.run(ask(run="r2", messages=[], resume=[answer(interrupt, approved=False)]))
    assert (outcome(events), text(events), paid) == ("cancelled", "", [])


@requirement("sub.asks")
async def test_a_turn_that_is_abandoned_for_a_new_message_takes_its_demands_with_it(serve: Serve) -> None:
    sse, websocket = await serve(delegating(worker()))
    (interrupt,) = interrupts(await sse.run(ask(text=PAY, forwardedProps=CANCEL)))
    message = {"id": "new", "role": "user", "content": PAY}
    abandoned = {"interruptId": interrupt["id"], "status": "cancelled"}
    events = await websocket.run(ask(run="r2", messages=[message], resume=[abandoned]))
    assert (outcome(events), paid) == ("success", [5])
