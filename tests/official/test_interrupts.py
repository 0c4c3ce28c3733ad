"""Approvals through the official client: its checks of answers, and its messages with the calls."""

from collections.abc import Iterator

import pytest

from tests.behaviour.approval_tools import POLICY, TOOLS
from tests.official.conversations import NUMBERS, check
from tests.official.judge import Conversation, Json, Judge
from tests.requirements import requirement
from tests.sockets.process import ServerProcess, serving

RULE = "it costs money"
HOUR = 3600
APPROVED: Json = {"status": "resolved", "payload": {"approved": True}}
EDITED: Json = {"status": "resolved", "payload": {"approved": True, "editedArgs": {"amount": 2}}}
DENIED: Json = {"status": "resolved", "payload": {"approved": False, "reason": "too much"}}
CANCELLED: Json = {"status": "cancelled"}
UNANSWERED = "Error: the user did not want this call."
CUT_OFF = "Error: the call was started and cut off; whether it took effect is not known."
DENIAL = "Error: the user denied this call: too much"


@pytest.fixture(scope="module")
def fixture() -> Iterator[ServerProcess]:
    """A server with the assistant whose payments must be approved."""
    with serving(tools=TOOLS, tool_policy=POLICY) as server:
        yield server


def say(said: str, **turn: object) -> Json:
    """A turn in which the user says something."""
    return {"add": [{"id": f"user-{next(NUMBERS)}", "role": "user", "content": said}], **turn}


def pay(*amounts: int) -> Json:
    """A turn in which the model wants to pay."""
    return say("\n".join(f'call pay {{"amount": {amount}}}' for amount in amounts))


def converse(judge: Judge, fixture: ServerProcess, *turns: Json) -> Conversation:
    """A conversation on a thread of its own."""
    return judge.run(fixture.invocations, turns, threadId=f"fixture-{next(NUMBERS)}")


def results_by_call(conversation: Conversation) -> list[tuple[str, list[str]]]:
    """The calls that the client holds, with the results it holds of each."""
    messages = conversation.messages
    calls = [call["id"] for message in messages for call in message.get("toolCalls", ())]
    return [(call, [message["content"] for message in messages if message.get("toolCallId") == call]) for call in calls]


@requirement("approval.client")
def test_a_run_that_asks_leaves_its_interrupts_with_the_client(judge: Judge, fixture: ServerProcess) -> None:
    conversation = converse(judge, fixture, pay(5, 6))
    (asked,) = conversation.turns
    assert check(judge, asked) == "RUN_FINISHED"
    assert asked.events[-1]["outcome"]["interrupts"] == asked.interrupts == conversation.interrupts
    assert [interrupt["reason"] for interrupt in asked.interrupts] == ["tool_call", "tool_call"]
    assert [interrupt["metadata"]["reason"] for interrupt in asked.interrupts] == [RULE, RULE]
    assert [(interrupt["toolCallId"], []) for interrupt in asked.interrupts] == results_by_call(conversation)


@requirement("approval.client")
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


@requirement("approval.client-refuses")
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


@requirement("approval.client")
def test_an_expired_interrupt_can_still_be_cancelled(judge: Judge, fixture: ServerProcess) -> None:
    late = {"decide": [CANCELLED], "seconds": HOUR + 60}
    conversation = converse(judge, fixture, pay(5), late)
    assert check(judge, conversation.turns[1]) == "RUN_FINISHED"
    assert results_by_call(conversation)[0][1] == [UNANSWERED]


@requirement("approval.client")
def test_an_answer_of_another_form_ends_in_an_error_and_can_be_given_again(
    judge: Judge, fixture: ServerProcess
) -> None:
    wrong = {"decide": [{"status": "resolved", "payload": {"approved": "yes"}}]}
    conversation = converse(judge, fixture, pay(5), wrong, {"decide": [APPROVED]})
    asked, refused, resumed = conversation.turns
    assert check(judge, refused) == "RUN_ERROR"
    assert refused.events[-1]["code"] == "VALIDATION_ERROR"
    assert refused.interrupts == asked.interrupts
    assert check(judge, resumed) == "RUN_FINISHED"
    assert results_by_call(conversation)[0][1] == ["paid 5"]


@requirement("approval.client")
def test_a_resumed_run_may_ask_again(judge: Judge, fixture: ServerProcess) -> None:
    again = {**pay(7), "decide": [APPROVED]}
    conversation = converse(judge, fixture, pay(5), again, {"decide": [EDITED]})
    first, second, third = conversation.turns
    assert [check(judge, turn) for turn in (first, second, third)] == ["RUN_FINISHED"] * 3
    assert [len(turn.interrupts) for turn in (first, second, third)] == [1, 1, 0]
    assert [given for _, given in results_by_call(conversation)] == [["paid 5"], ["paid 2"]]


@requirement("approval.client-aborts")
def test_an_abort_while_a_tool_waits_leaves_the_thread_to_the_next_run(judge: Judge, fixture: ServerProcess) -> None:
    conversation = converse(judge, fixture, say("call stick {}", abortAfter=5), say("stream 1"))
    stopped, after = conversation.turns
    assert stopped.error is None
    assert stopped.types[-2:] == ["TOOL_CALL_END", "RUN_ERROR"]
    assert stopped.events[-1]["code"] == "abort"
    assert check(judge, after) == "RUN_FINISHED"
    assert after.text == "hello world, "


@requirement("approval.client-aborts")
def test_an_abort_while_an_approved_call_waits_does_not_start_it_again(judge: Judge, fixture: ServerProcess) -> None:
    turns = [say("call order {}"), {"decide": [APPROVED], "abortAfter": 1}, {"decide": [APPROVED]}]
    conversation = converse(judge, fixture, *turns)
    asked, stopped, resumed = conversation.turns
    assert stopped.types == ["RUN_STARTED", "RUN_ERROR"]
    assert stopped.events[-1]["code"] == "abort"
    assert stopped.interrupts == asked.interrupts
    assert check(judge, resumed) == "RUN_FINISHED"
    assert results_by_call(conversation)[0][1] == [CUT_OFF]
