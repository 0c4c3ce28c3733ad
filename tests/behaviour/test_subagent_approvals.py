"""Subagents that must ask people: suspended, and taken up again with the answer."""

import pytest

from tests.behaviour.client import outcome, text
from tests.behaviour.subagents import call_messages, of_type, paid, parts, team
from tests.conftest import Connect
from tests.engine.doubles import ask
from tests.requirements import requirement


@requirement("sub.suspended", "sub.resumed")
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


@requirement("sub.suspended")
async def test_a_subagent_that_is_denied_is_told_so(connect: Connect) -> None:
    client = await connect(team())
    first = await client.run(ask(text='delegate call pay {"amount": 5}'))
    [interrupt] = first[-1]["outcome"]["interrupts"]
    payload = {"approved": False, "reason": "too much"}
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
    second = await client.run(ask(run="r2", messages=call_messages(first), resume=[answer]))
    assert "too much" in text(second)
    assert paid == []


@requirement("sub.suspended")
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
