"""Subagents that must ask people: suspended, and taken up again with the answer."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest
from ag_ui.core import Interrupt, RunAgentInput, RunFinishedEvent, RunFinishedInterruptOutcome

from agui_container.agents.as_agent import as_agent
from agui_container.assistant.assistant import Assistant
from agui_container.assistant.subagents import Subagent
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, Permission, PolicyDecision, RunContext, RunInterrupted
from tests.behaviour.client import outcome, text
from tests.behaviour.conversations import ClientThread, answer, interrupts, results
from tests.behaviour.subagents import call_messages, of_type, paid, parts, pay, team
from tests.conftest import Connect
from tests.engine.doubles import Json, ask

ASK_ALL: Json = {"approvals": {"ask": "all"}}
CANCEL: Json = {"approvals": {"ask": "all", "onDenial": "cancel"}}


@pytest.mark.parametrize("message", ["delegate call pay {}", "delegate delegate call pay {}"])
async def test_a_subagent_that_must_ask_is_suspended_and_goes_on_with_the_answer(
    connect: Connect, message: str
) -> None:
    client = await connect(team())
    first = await client.run(ask(text=message.format('{"amount": 5}')))
    [interrupt] = first[-1]["outcome"]["interrupts"]
    keys = parts(first)
    assert interrupt["subagentRunId"] == keys[-1]
    ends = of_type(first, "SUBAGENT_FINISHED")
    assert ends[0]["outcome"] == {"type": "suspended", "interruptIds": [interrupt["id"]]}
    assert all(end["outcome"] == {"type": "suspended"} for end in ends[1:])
    assert paid == []
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
    body = ask(run="r2", messages=call_messages(first), resume=[answer])
    second = await client.run(body)
    assert parts(second) == keys
    assert paid == [5]
    assert "paid 5" in text(second)
    assert outcome(second) == "success"
    third = await client.run({**body, "runId": "r3"})
    assert paid == [5]
    assert outcome(third) == "success"


async def test_a_subagent_that_is_denied_is_told_so(connect: Connect) -> None:
    client = await connect(team())
    first = await client.run(ask(text='delegate call pay {"amount": 5}'))
    [interrupt] = first[-1]["outcome"]["interrupts"]
    payload = {"approved": False, "reason": "too much"}
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
    second = await client.run(ask(run="r2", messages=call_messages(first), resume=[answer]))
    assert "too much" in text(second)
    assert paid == []


async def test_a_cancelled_question_of_a_subagent_that_was_edited_away_leaves_nothing_of_it(connect: Connect) -> None:
    client = await connect(team())
    first = await client.run(ask(text='delegate call pay {"amount": 5}'))
    [interrupt] = first[-1]["outcome"]["interrupts"]
    cancelled = {"interruptId": interrupt["id"], "status": "cancelled"}
    second = await client.run(ask(run="r2", text="stream 1", resume=[cancelled]))
    kinds = {event["type"] for event in second}
    assert kinds.isdisjoint({"SUBAGENT_STARTED", "TOOL_CALL_START", "TOOL_CALL_RESULT"})
    assert (outcome(second), text(second), paid) == ("success", "hello world, ", [])


async def test_answers_may_come_one_by_one(connect: Connect) -> None:
    client = await connect(team())
    both = 'delegate call pay {"amount": 1}\ncall pay {"amount": 2}'
    first = await client.run(ask(text=both))
    one, two = first[-1]["outcome"]["interrupts"]
    yes = {"status": "resolved", "payload": {"approved": True}}
    messages = call_messages(first)
    second = await client.run(ask(run="r2", messages=messages, resume=[{"interruptId": one["id"], **yes}]))
    assert [interrupt["id"] for interrupt in second[-1]["outcome"]["interrupts"]] == [two["id"]]
    assert paid == [1]
    third = await client.run(ask(run="r3", messages=messages, resume=[{"interruptId": two["id"], **yes}]))
    assert outcome(third) == "success"
    assert paid == [1, 2]


def names(events: list[Json]) -> list[str]:
    return [interrupt["metadata"]["toolName"] for interrupt in interrupts(events)]


async def approve_all(thread: ClientThread, said: str, props: Json) -> list[str]:
    """Send a message, and approve each call that is asked for, one after the other. Return the names of the calls."""
    asked: list[str] = []
    events = await thread.say(said, forwardedProps=props)
    while waiting := interrupts(events):
        asked += names(events)
        assert paid == []
        events = await thread.say(resume=[answer(it, approved=True) for it in waiting], forwardedProps=props)
    assert outcome(events) == "success"
    return asked


def worker() -> Assistant:
    return Assistant(OfflineModel(), (pay,))


def behind_a_function(agent: Assistant) -> object:
    """A function that answers by an assistant, which it gives an input of its own."""

    async def answer_by_assistant(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        async for item in agent.run(input.model_copy(update={"forwarded_props": None}), ctx):
            yield item

    return answer_by_assistant


def delegating(agent: object, policy: str | None = None) -> Assistant:
    """An assistant that can only delegate, and whose policy says this of ``pay``."""
    paid.clear()
    decision = PolicyDecision(Permission(policy or "allow"), reason="money")
    rules = {"pay": decision}
    return Assistant(
        OfflineModel(),
        (Subagent("delegate", "Helps.", as_agent(agent, "agent")),),
        policy=lambda name: rules.get(name, PolicyDecision(Permission.ALLOW)),
    )


ASKED: dict[str, tuple[Callable[[], object], Json, list[str]]] = {
    "at any depth": (lambda: delegating(delegating(delegating(worker()))), ASK_ALL, [*["delegate"] * 3, "pay"]),
    "behind an agent of another make": (
        lambda: delegating(behind_a_function(worker())),
        ASK_ALL,
        ["delegate", "pay"],
    ),
    "by the policy of the assistant above": (lambda: delegating(worker(), "ask"), {}, ["pay"]),
}


@pytest.mark.parametrize(("make", "props", "asked"), ASKED.values(), ids=ASKED)
async def test_calls_of_subagents_are_asked_for(
    connect: Connect, make: Callable[[], object], props: Json, asked: list[str]
) -> None:
    thread = ClientThread(await connect(make()))
    said = "delegate " * max(asked.count("delegate"), 1) + 'call pay {"amount": 5}'
    assert await approve_all(thread, said, props) == asked
    assert paid == [5]


@pytest.mark.parametrize("raises", [False, True], ids=["event", "exception"])
async def test_a_subagent_asks_a_question_of_its_own_and_goes_on_with_the_answer(
    connect: Connect, *, raises: bool
) -> None:
    async def order(input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        question = Interrupt(id="size", reason="choice", message="Which size?")
        if input.resume:
            yield f"ordered {input.resume[0].payload}"
        elif raises:
            raise RunInterrupted([question])
        else:
            asked = RunFinishedInterruptOutcome(interrupts=[question])
            yield RunFinishedEvent(thread_id=input.thread_id, run_id=input.run_id, outcome=asked)

    thread = ClientThread(await connect(delegating(order)))
    first = await thread.say("delegate a shirt")
    [question] = interrupts(first)
    assert (question["message"], question["subagentRunId"]) == ("Which size?", parts(first)[0])
    assert "'size': 'L'" in text(await thread.say(resume=[answer(question, size="L")]))


async def test_a_denial_in_a_subagent_ends_a_run_that_wants_that_and_nothing_more_is_said(connect: Connect) -> None:
    client = await connect(delegating(worker()))
    thread = ClientThread(client)
    said = 'delegate call pay {"amount": 5}\ncall pay {"amount": 6}'
    (outer,) = interrupts(await thread.say(said, forwardedProps=CANCEL))
    first, second = interrupts(await thread.say(resume=[answer(outer, approved=True)], forwardedProps=CANCEL))
    denial = [answer(first, approved=False, reason="no"), answer(second, approved=False)]
    events = await thread.say(resume=denial, forwardedProps=CANCEL)
    assert (outcome(events), text(events), paid) == ("cancelled", "", [])
    assert results(events)[0] == "Error: the user denied this call: no"


STRICT = replace(worker(), policy=lambda _: PolicyDecision(Permission.DENY, reason="never"))
DENIED: dict[str, tuple[object, str, str]] = {
    "by the assistant above": (worker(), "deny", "money"),
    "behind an agent of another make": (behind_a_function(worker()), "deny", "money"),
    "by the subagent itself": (STRICT, "ask", "never"),
}


@pytest.mark.parametrize(("agent", "policy", "reason"), DENIED.values(), ids=DENIED)
async def test_a_tool_that_is_denied_stays_so_in_subagents(
    connect: Connect, agent: object, policy: str, reason: str
) -> None:
    client = await connect(delegating(agent, policy))
    events = await client.run(ask(text='delegate call pay {"amount": 5}'))
    assert f"this tool is not allowed: {reason}" in text(events)
    assert paid == []


async def test_the_tokens_of_a_callers_budget_are_those_of_all_subagents_together(connect: Connect) -> None:
    client = await connect(delegating(worker()))
    budget = {"budget": {"tokens": 10}}
    events = await client.run(ask(text="delegate stream 20", forwardedProps=budget))
    assert events[-1]["code"] == "RUN_LIMIT_EXCEEDED"
