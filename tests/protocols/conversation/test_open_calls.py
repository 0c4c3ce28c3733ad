"""Calls that one session of a thread leaves open, and other sessions answer."""

from typing import Any

import pytest

from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from tests.behaviour.approval_tools import PAID
from tests.protocols.clients import Clients
from tests.protocols.grpc.client import RozSession, call_text, schema

pytestmark = [pytest.mark.wire, pytest.mark.processes]

TWICE = f"{call_text('pay', amount=5)}\n{call_text('pay', amount=6)}"


async def open_thread(clients: Clients, text: str, **start: Any) -> RozSession:
    """Leave the calls of a message open, as a client does that goes away."""
    turn = await clients.start_session(**start)
    await turn.say(text)
    return turn


async def test_a_session_is_told_what_waits_on_its_thread_and_decides_one_call_after_the_other(
    clients: Clients,
) -> None:
    first = await open_thread(clients, TWICE)
    await first.until("1.0 approval_requested")
    await first.until("1.0 approval_requested")
    second = await clients.start_session(first.thread)
    waiting = [(await second.until("1.0 approval_requested")).approval_id for _ in range(2)]
    for approval, approved in zip(waiting, (True, False), strict=True):
        await second.decide(approval, approved=approved)
    reasons = [(await second.until("1.0 turn_finished")).stop_reason for _ in range(2)]
    assert reasons == ["tool_use", "end_turn"]
    assert [outcome["approved"] for outcome in second.outcomes] == [True, False]
    assert PAID[first.thread] == [5]
    await first.until("1.0 turn_finished")


async def test_a_session_that_opened_before_the_question_decides_it_too(clients: Clients) -> None:
    first = await open_thread(clients, "hello")
    await first.until("1.0 turn_finished")
    second = await clients.start_session(first.thread)
    await first.say(call_text("pay", amount=5))
    approval = (await first.until("1.0 approval_requested")).approval_id
    await second.decide(approval, approved=True)
    assert (await second.until("1.0 turn_finished")).stop_reason == "end_turn"
    await first.until("1.0 turn_finished")
    assert PAID[first.thread] == [5]
    await second.decide(approval, approved=True)
    assert "no call waits" in (await second.until("1.0 session_rejected")).message
    assert PAID[first.thread] == [5]


async def test_a_decision_that_follows_a_message_at_once_counts(clients: Clients) -> None:
    first = await open_thread(clients, call_text("pay", amount=5))
    approval = (await first.until("1.0 approval_requested")).approval_id
    second = await clients.start_session(first.thread)
    await second.say("hello")
    await second.until("1.0 turn_started")
    await second.decide(approval, approved=True)
    assert (await second.until("1.0 turn_finished")).stop_reason == "end_turn"
    assert PAID[first.thread] == [5]
    await first.until("1.0 turn_finished")


async def test_the_result_of_a_clients_tool_is_taken_from_another_session(clients: Clients) -> None:
    first = await open_thread(clients, call_text("move", x=3), tools=[schema("move")])
    call = (await first.until("1.0 tool_call_requested")).call_id
    second = await clients.start_session(first.thread, tools=[schema("move")])
    assert (await second.until("1.0 tool_call_requested")).call_id == call
    await second.give(call, "moved to 3")
    assert (await second.until("1.0 turn_finished")).stop_reason == "end_turn"
    assert "moved to 3" in second.text
    await first.until("1.0 turn_finished")


async def test_a_session_without_the_tool_is_not_asked_to_run_it(clients: Clients) -> None:
    first = await open_thread(clients, call_text("move", x=3), tools=[schema("move")])
    await first.until("1.0 tool_call_requested")
    second = await clients.start_session(first.thread)
    await second.decide("another call", approved=True)
    await second.until("1.0 session_rejected")
    assert "tool_call_requested" not in second.events


async def test_a_cancel_right_behind_a_message_cancels_its_turn(clients: Clients) -> None:
    turn = await clients.start_session()
    await turn.say("wait 60")
    await turn.send(cancel_turn=roz.CancelTurn())
    assert (await turn.until("1.0 turn_finished")).stop_reason == "cancelled"


async def test_a_tool_that_exceeds_its_timeout_is_answered_with_an_error(clients: Clients) -> None:
    turn = await open_thread(clients, call_text("move", x=3), tools=[schema("move", timeout_ms=1)])
    assert (await turn.until("1.0 turn_finished")).stop_reason == "end_turn"
    assert "the tool did not answer within 1 ms." in turn.text


async def test_calls_stay_open_for_other_sessions_when_a_client_sends_no_more(clients: Clients) -> None:
    first = await open_thread(clients, call_text("pay", amount=5))
    approval = (await first.until("1.0 approval_requested")).approval_id
    await first.end()
    await first.rest()
    second = await clients.start_session(first.thread)
    assert (await second.until("1.0 approval_requested")).approval_id == approval
    assert first.outcomes == []


async def test_a_denial_of_a_call_that_an_earlier_turn_left_open_lets_kontekst_answer_its_prompt(
    clients: Clients,
) -> None:
    first = await open_thread(clients, call_text("pay", amount=5))
    await first.until("1.0 approval_requested")
    run = await clients.start_run("stream 1", first.thread)
    for call in (await run.until("tools_proposed")).calls:
        await run.send(deny_tool=kontekst.DenyToolCommand(call_id=call.call_id))
    rest = await run.rest()
    assert ("tools_proposed" in rest, rest[-1], PAID[first.thread]) == (False, "completed", [])
