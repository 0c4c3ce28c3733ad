"""An answer that comes after that of another client is refused, and harms neither the other client nor its run.

The clients over gRPC do not look for runs of others by themselves here, so their answers are always late.
"""

import asyncio

import pytest

from agui_container.protocols.conversation import following
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from tests.behaviour.approval_tools import PAID
from tests.engine.doubles import WAIT
from tests.protocols.clients import Clients, serving_clients
from tests.protocols.grpc.client import RozSession, Run, call_text

pytestmark = [pytest.mark.wire, pytest.mark.processes]

PAY = call_text("pay", amount=5)
LOOK = [roz.ToolSchema(name="look", description="Look.")]
DENIED = {"type": "denied", "approved": False, "reason": "The user has denied the call."}
DENIED_ELSEWHERE = {**DENIED, "elsewhere": True, "reason": "Another client has denied the call."}


@pytest.fixture(autouse=True)
def _no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_SECONDS", 2 * WAIT)


async def ask_client(clients: Clients) -> tuple[RozSession, str]:
    """Begin a turn in which the agent calls a tool of the client. Return it with the id of the call."""
    turn = await clients.start_session(tools=LOOK)
    await turn.say(call_text("look"))
    return turn, (await turn.until("1.0 tool_call_requested")).call_id


@pytest.mark.parametrize("on_busy", ["reject", "enqueue", "interrupt"])
async def test_a_late_approval_in_roz_is_refused_and_the_denial_is_told(on_busy: str) -> None:
    async with serving_clients(on_busy=on_busy) as clients:
        turn = await clients.start_session()
        await turn.say(PAY)
        approval = (await turn.until("1.0 approval_requested")).approval_id
        await clients.answer(turn.thread, approved=False)
        await turn.decide(approval, approved=True)
        assert f"no call '{approval}' waits" in (await turn.until("1.0 session_rejected")).message
        assert (await turn.until("1.0 turn_finished")).stop_reason == "end_turn"
        assert turn.outcomes == [DENIED_ELSEWHERE]
        assert "tool_call_started" not in turn.events
        assert "denied" in turn.text
        assert len(await clients.runs(turn.thread)) == 2
        assert PAID[turn.thread] == []


async def test_a_late_result_in_roz_is_refused_and_begins_no_second_run(clients: Clients) -> None:
    turn, call_id = await ask_client(clients)
    result = {"id": "m2", "role": "tool", "toolCallId": call_id, "content": "seen over SSE"}
    await clients.run(turn.thread, messages=[result])
    await turn.give(call_id, "seen in roz")
    await turn.until("1.0 turn_finished")
    assert turn.events_since("tool_call_requested")[:2] == ["session_rejected", "tool_call_finished"]
    assert turn.all("1.0 tool_call_finished")[0].result_summary == "seen over SSE"
    assert "seen over SSE" in turn.text
    assert len(await clients.runs(turn.thread)) == 2
    assert ("tool", "seen in roz") not in await clients.messages(turn.thread)


@pytest.mark.parametrize("is_valid_first", [True, False])
async def test_of_two_sessions_that_decide_at_once_the_one_that_is_behind_is_refused_and_both_tell_the_same(
    clients: Clients,
    is_valid_first: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    one = await clients.start_session()
    await one.say(PAY)
    approval = (await one.until("1.0 approval_requested")).approval_id
    other = await clients.start_session(one.thread)
    await other.say("hello")
    await other.until("1.0 turn_started")
    await other.until("1.0 approval_requested")
    decisions = [(other, False), (one, True)] if is_valid_first else [(one, True), (other, False)]
    await asyncio.gather(*(turn.decide(approval, approved=approved) for turn, approved in decisions))
    await one.until("1.0 session_rejected")
    await one.decide((await one.until("1.0 approval_requested")).approval_id, approved=True)
    await one.until("1.0 session_rejected")
    await asyncio.gather(one.until("1.0 turn_finished"), other.until("1.0 turn_finished"))
    assert other.outcomes == [DENIED]
    assert one.outcomes == [DENIED_ELSEWHERE]
    assert one.text == other.text != ""
    assert PAID[one.thread] == []


async def propose(clients: Clients, prompt: str) -> tuple[Run, str, str]:
    """Begin a run that proposes one call. Returns the ids of its thread and of the call, too."""
    run = await clients.start_run(prompt)
    thread = (await run.until("started")).session_id
    return run, thread, (await run.until("tools_proposed")).calls[0].call_id


async def test_a_late_approval_in_kontekst_is_ignored_and_the_denial_is_told(clients: Clients) -> None:
    run, thread, call_id = await propose(clients, PAY)
    await clients.answer(thread, approved=False)
    await run.send(approve_tool=kontekst.ApproveToolCommand(call_id=call_id))
    await run.end()
    assert await run.rest() == ["tool_failed", "tools_completed", "cancelled"]
    assert "denied" in run.all("tool_failed")[0].error
    assert len(await clients.runs(thread)) == 2
    assert PAID[thread] == []


async def test_a_proposal_of_a_client_of_kontekst_that_sends_no_more_is_cancelled(clients: Clients) -> None:
    run, thread, _ = await propose(clients, PAY)
    await run.end()
    assert (await run.rest())[-1] == "cancelled"
    assert PAID[thread] == []
