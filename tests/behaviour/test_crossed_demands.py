"""Demands of a caller on tool calls, where another client answers and demands nothing."""

from collections.abc import AsyncIterator, Callable

import pytest
from ag_ui.core import (
    Interrupt,
    RunAgentInput,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    ToolCallChunkEvent,
    UserMessage,
)

from agui_container import RunContext
from agui_container.agents.as_agent import as_agent
from agui_container.agents.gate.call_tool import AgentWithTools
from agui_container.assistant.assistant import Assistant
from agui_container.assistant.subagents import Subagent
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunInterrupted
from tests.agents.doubles import DONE, ScriptedModel, asks
from tests.behaviour.approval_tools import with_tools
from tests.behaviour.client import Client, outcome
from tests.behaviour.conversations import PAINT, answer, calls, interrupts
from tests.behaviour.subagents import paid, pay
from tests.conftest import Serve
from tests.engine.doubles import Json, ask

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


async def test_a_turn_that_is_abandoned_for_a_new_message_takes_its_demands_with_it(serve: Serve) -> None:
    sse, websocket = await serve(delegating(worker()))
    (interrupt,) = interrupts(await sse.run(ask(text=PAY, forwardedProps=CANCEL)))
    message = {"id": "new", "role": "user", "content": PAY}
    abandoned = {"interruptId": interrupt["id"], "status": "cancelled"}
    events = await websocket.run(ask(run="r2", messages=[message], resume=[abandoned]))
    assert (outcome(events), paid) == ("success", [5])


def asking(*, raises: bool) -> AgentWithTools:
    """An agent of one's own that asks a question of its own, and pays as soon as it is answered."""

    async def agent(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        question = Interrupt(id="how-much", reason="choice", message="How much?")
        if input.resume and input.resume[0].status == "resolved":
            yield str(await ctx.call_tool("pay", {"amount": input.resume[0].payload}))
        elif raises:
            raise RunInterrupted([question])
        else:
            asked = RunFinishedInterruptOutcome(interrupts=[question])
            yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=asked)

    paid.clear()
    return with_tools(agent, "[]", pay)


@pytest.mark.parametrize("raises", [False, True], ids=["event", "exception"])
@pytest.mark.parametrize("demands", [[CANCEL, {}], [{}, CANCEL]], ids=["with the question", "while it waits"])
async def test_an_agents_own_question_keeps_the_demands_that_come_before_its_answer(
    serve: Serve, demands: list[Json], *, raises: bool
) -> None:
    sse, websocket = await serve(asking(raises=raises))
    answered = {"interruptId": "how-much", "status": "resolved", "payload": 5}
    for run, demand in enumerate(demands):
        message = {"id": f"u{run}", "role": "user", "content": "pay"}
        await sse.run(ask(run=f"r{run}", messages=[message], forwardedProps=demand))
    events = await websocket.run(ask(run="answer", messages=[], resume=[answered]))
    assert (asked_for(events), paid) == (["pay"], [])
    (interrupt,) = interrupts(events)
    events = await sse.run(ask(run="denial", messages=[], resume=[answer(interrupt, approved=False)]))
    assert (outcome(events), paid) == ("cancelled", [])


async def painting(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    """Call the client's ``paint``, and pay for its result."""
    if isinstance(input.messages[-1], UserMessage):
        yield ToolCallChunkEvent(tool_call_id="paint-1", tool_call_name="paint", delta="{}")
    else:
        yield str(await ctx.call_tool("pay", {"amount": 5}))


def function_that_paints() -> AgentWithTools:
    return with_tools(painting, "[]", pay)


def assistant_that_paints() -> Assistant:
    return Assistant(ScriptedModel([asks("paint"), asks(("pay", '{"amount": 5}')), DONE]), (pay,))


@pytest.mark.parametrize("make", [function_that_paints, assistant_that_paints])
async def test_a_turn_that_continues_with_the_result_of_a_client_tool_keeps_its_demands(
    serve: Serve, make: Callable[[], object]
) -> None:
    paid.clear()
    sse, websocket = await serve(make())
    events = await sse.run(ask(text="paint and pay", tools=[PAINT], forwardedProps=CANCEL))
    result = {"id": "result", "role": "tool", "toolCallId": calls(events)["paint"], "content": "painted"}
    events = await websocket.run(ask(run="r2", messages=[result], tools=[PAINT]))
    assert (asked_for(events), paid) == (["pay"], [])
    (interrupt,) = interrupts(events)
    events = await sse.run(ask(run="r3", messages=[], resume=[answer(interrupt, approved=False)]))
    assert (outcome(events), paid) == ("cancelled", [])
