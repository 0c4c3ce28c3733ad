"""Calls that one session of a thread leaves open, and other sessions answer."""

import pytest

from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from tests.behaviour.approval_tools import PAID
from tests.protocols.conversation.two_clients import Clients, RozTurn, two_clients
from tests.protocols.grpc.client import call_text
from tests.protocols.roz.calls import schema

pytestmark = [pytest.mark.wire, pytest.mark.processes]

TWICE = f"{call_text('pay', amount=5)}\n{call_text('pay', amount=6)}"


async def open_thread(clients: Clients, text: str, **start: object) -> RozTurn:
    """Leave the calls of a message open, as a client does that goes away."""
    turn = RozTurn(clients.grpc.new_session())
    await turn.say(text, **start)
    return turn


async def reopened(clients: Clients, thread: str, **start: object) -> RozTurn:
    turn = RozTurn(clients.on_thread(thread).new_session())
    await turn.send(start=roz.StartSession(**start))  # type: ignore[arg-type] # the fields of a start
    await turn.until("session_started")
    return turn


async def test_a_session_is_told_what_waits_on_its_thread_and_decides_one_call_after_the_other() -> None:
    async with two_clients() as clients:
        first = await open_thread(clients, TWICE)
        await first.until("approval_requested")
        await first.until("approval_requested")
        second = await reopened(clients, first.thread)
        waiting = [(await second.until("approval_requested")).approval_id for _ in range(2)]
        for approval, approved in zip(waiting, (True, False), strict=True):
            await second.decide(approval, approved=approved)
        reasons = [(await second.until("turn_finished")).stop_reason for _ in range(2)]
        assert reasons == ["tool_use", "end_turn"]
        assert [outcome["approved"] for outcome in second.outcomes] == [True, False]
        assert PAID[first.thread] == [5]
        await first.until("turn_finished")


async def test_a_session_that_opened_before_the_question_decides_it_too() -> None:
    async with two_clients() as clients:
        first = await open_thread(clients, "hello")
        await first.until("turn_finished")
        second = await reopened(clients, first.thread)
        await first.send(user_message=roz.UserMessage(content=call_text("pay", amount=5)))
        approval = (await first.until("approval_requested")).approval_id
        await second.decide(approval, approved=True)
        assert (await second.until("turn_finished")).stop_reason == "end_turn"
        await first.until("turn_finished")
        assert PAID[first.thread] == [5]
        await second.decide(approval, approved=True)
        assert "no call waits" in (await second.until("session_rejected")).message
        assert PAID[first.thread] == [5]


async def test_a_decision_that_follows_a_message_at_once_counts() -> None:
    async with two_clients() as clients:
        first = await open_thread(clients, call_text("pay", amount=5))
        approval = (await first.until("approval_requested")).approval_id
        second = await reopened(clients, first.thread)
        await second.send(user_message=roz.UserMessage(content="hello"))
        await second.until("turn_started")
        await second.decide(approval, approved=True)
        assert (await second.until("turn_finished")).stop_reason == "end_turn"
        assert PAID[first.thread] == [5]
        await first.until("turn_finished")


async def test_the_result_of_a_clients_tool_is_taken_from_another_session() -> None:
    async with two_clients() as clients:
        first = await open_thread(clients, call_text("move", x=3), tools=[schema("move")])
        call = (await first.until("tool_call_requested")).call_id
        second = await reopened(clients, first.thread, tools=[schema("move")])
        assert (await second.until("tool_call_requested")).call_id == call
        await second.send(tool_result=roz.ToolResult(tool_call_id=call, success=True, result="moved to 3"))
        assert (await second.until("turn_finished")).stop_reason == "end_turn"
        assert "moved to 3" in second.text
        await first.until("turn_finished")


async def test_a_session_without_the_tool_is_not_asked_to_run_it() -> None:
    async with two_clients() as clients:
        first = await open_thread(clients, call_text("move", x=3), tools=[schema("move")])
        await first.until("tool_call_requested")
        second = await reopened(clients, first.thread)
        await second.decide("another call", approved=True)
        await second.until("session_rejected")
        assert "tool_call_requested" not in second.kinds


async def test_a_cancel_right_behind_a_message_cancels_its_turn() -> None:
    async with two_clients() as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say("wait 60")
        await turn.send(cancel_turn=roz.CancelTurn())
        assert (await turn.until("turn_finished")).stop_reason == "cancelled"


async def test_a_tool_that_exceeds_its_timeout_is_answered_with_an_error() -> None:
    async with two_clients() as clients:
        turn = await open_thread(clients, call_text("move", x=3), tools=[schema("move", timeout_ms=1)])
        assert (await turn.until("turn_finished")).stop_reason == "end_turn"
        assert "the tool did not answer within 1 ms." in turn.text


async def test_calls_stay_open_for_other_sessions_when_a_client_sends_no_more() -> None:
    async with two_clients() as clients:
        session = clients.grpc.new_session()
        first = RozTurn(session)
        await first.say(call_text("pay", amount=5))
        approval = (await first.until("approval_requested")).approval_id
        await session.call.end()
        while await session.call.receive() is not None:
            pass
        second = await reopened(clients, first.thread)
        assert (await second.until("approval_requested")).approval_id == approval
        assert first.outcomes == []


async def test_a_denial_of_a_call_that_an_earlier_turn_left_open_lets_kontekst_answer_its_prompt() -> None:
    async with two_clients() as clients:
        first = await open_thread(clients, call_text("pay", amount=5))
        await first.until("approval_requested")
        run = await clients.grpc.start_run("stream 1", first.thread)
        kinds: list[str | None] = []
        while kinds[-1:] not in (["completed"], ["cancelled"], ["failed"]):
            event = await run.receive()
            assert event is not None
            kinds.append(event.WhichOneof("event"))
            for call in event.tools_proposed.calls:
                await run.send(kontekst.RunCommand(deny_tool=kontekst.DenyToolCommand(call_id=call.call_id)))
        assert (kinds.count("tools_proposed"), kinds[-1], PAID[first.thread]) == (1, "completed", [])
