"""Approvals through the official client: its checks of answers, and its messages with the calls."""

from collections.abc import Iterator

import pytest

from tests.behaviour.approval_tools import POLICY, TOOLS
from tests.official.conversations import NUMBERS, check
from tests.official.judge import Conversation, Json, Judge
from tests.server.sockets.process import ServerProcess, serving

pytestmark = pytest.mark.other_language

RULE = "it costs money"
HOUR = 3600
APPROVED: Json = {"status": "resolved", "payload": {"approved": True}}
EDITED: Json = {"status": "resolved", "payload": {"approved": True, "editedArgs": {"amount": 2}}}
DENIED: Json = {"status": "resolved", "payload": {"approved": False, "reason": "too much"}}
CANCELLED: Json = {"status": "cancelled"}
UNANSWERED = "Error: the user did not want this call."
DENIAL = "Error: the user denied this call: too much"


@pytest.fixture(scope="module")
def fixture() -> Iterator[ServerProcess]:
    with serving(tools=TOOLS, tool_policy=POLICY) as server:
        yield server


def say(said: str, **turn: object) -> Json:
    return {"add": [{"id": f"user-{next(NUMBERS)}", "role": "user", "content": said}], **turn}


def pay(*amounts: int) -> Json:
    return say("\n".join(f'call pay {{"amount": {amount}}}' for amount in amounts))


def converse(judge: Judge, fixture: ServerProcess, *turns: Json) -> Conversation:
    return judge.run(fixture.invocations, turns, threadId=f"fixture-{next(NUMBERS)}")


def results_by_call(conversation: Conversation) -> list[tuple[str, list[str]]]:
    messages = conversation.messages
    calls = [call["id"] for message in messages for call in message.get("toolCalls", ())]
    return [(call, [message["content"] for message in messages if message.get("toolCallId") == call]) for call in calls]


def test_a_run_that_asks_leaves_its_interrupts_with_the_client(judge: Judge, fixture: ServerProcess) -> None:
    conversation = converse(judge, fixture, pay(5, 6))
    (asked,) = conversation.turns
    assert check(judge, asked) == "RUN_FINISHED"
    assert asked.events[-1]["outcome"]["interrupts"] == asked.interrupts == conversation.interrupts
    assert [interrupt["reason"] for interrupt in asked.interrupts] == ["tool_call", "tool_call"]
    assert [interrupt["metadata"]["reason"] for interrupt in asked.interrupts] == [RULE, RULE]
    assert [(interrupt["toolCallId"], []) for interrupt in asked.interrupts] == results_by_call(conversation)


@pytest.mark.parametrize(
    ("decisions", "results"),
    [
        ([APPROVED], ["paid 5"]),
        ([EDITED], ["paid 2"]),
        ([DENIED], [DENIAL]),
        ([CANCELLED], [UNANSWERED]),
        ([DENIED, APPROVED, CANCELLED, EDITED], [DENIAL, "paid 6", UNANSWERED, "paid 2"]),
    ],
    ids=["approved", "edited", "denied", "cancelled", "each its own"],
)
def test_the_client_sends_every_answer_and_holds_each_call_with_one_result(
    judge: Judge, fixture: ServerProcess, decisions: list[Json], results: list[str]
) -> None:
    amounts = range(5, 5 + len(decisions))
    conversation = converse(judge, fixture, pay(*amounts), {"decide": decisions}, say("stream 1"))
    _, resumed, after = conversation.turns
    assert check(judge, resumed) == check(judge, after) == "RUN_FINISHED"
    assert resumed.events[-1]["outcome"] == {"type": "success"}
    assert resumed.interrupts == conversation.interrupts == []
    assert [given for _, given in results_by_call(conversation)] == [[result] for result in results]
    assert resumed.text
    assert after.text == "hello world, "


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ({}, "not addressed by resume"),
        ({"decide": [APPROVED], "partly": True}, "Thread has 1 pending interrupt"),
        ({"decide": [APPROVED]}, "missing responses for open interrupts"),
        ({"decide": [APPROVED, APPROVED], "seconds": HOUR + 60}, "can no longer be answered"),
    ],
    ids=["no answer", "one of two", "one of two, by its own helper", "too late"],
)
def test_the_client_itself_refuses_what_no_server_may_be_sent(
    judge: Judge, fixture: ServerProcess, turn: Json, reason: str
) -> None:
    conversation = converse(judge, fixture, pay(5, 6), turn, {"decide": [APPROVED, DENIED]})
    asked, refused, resumed = conversation.turns
    assert refused.error is not None
    assert reason in refused.error
    assert refused.wire["status"] is None
    assert refused.interrupts == asked.interrupts
    assert check(judge, resumed) == "RUN_FINISHED"
    assert [given for _, given in results_by_call(conversation)] == [["paid 5"], [DENIAL]]
