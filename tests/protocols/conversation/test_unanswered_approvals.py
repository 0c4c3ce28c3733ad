"""An approval that ends without a decision, because its turn is cancelled or because it expires."""

import pytest

from agui_container.agents.gate import journal
from agui_container.protocols.gen import agent_pb2 as roz
from tests.behaviour.approval_tools import PAID
from tests.protocols.clients import Clients
from tests.protocols.grpc.client import call_text

pytestmark = [pytest.mark.wire, pytest.mark.processes]

PAY = call_text("pay", amount=5)
CANCELLED = {"type": "denied", "approved": False, "cancelled": True, "reason": "The turn was cancelled."}
EXPIRED = {"type": "denied", "approved": False, "expired": True, "reason": "Nobody has decided in time."}
TWICE = f"{PAY}\n{call_text('pay', amount=6)}"


@pytest.fixture
def short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LIFETIME", 1.0)


async def test_the_approvals_of_a_cancelled_turn_are_resolved_as_cancelled(clients: Clients) -> None:
    turn = await clients.start_session()
    await turn.say(TWICE)
    await turn.until("1.0 approval_requested")
    await turn.decide((await turn.until("1.0 approval_requested")).approval_id, approved=True)
    await turn.send(cancel_turn=roz.CancelTurn())
    assert (await turn.until("1.0 turn_finished")).stop_reason == "cancelled"
    assert turn.outcomes == [CANCELLED, CANCELLED]
    assert PAID[turn.thread] == []


@pytest.mark.usefixtures("short_lives")
async def test_approvals_that_expire_in_roz_are_resolved_then_and_the_model_is_told(clients: Clients) -> None:
    turn = await clients.start_session()
    await turn.say(TWICE)
    await turn.until("1.0 approval_requested")
    approval = (await turn.until("1.0 approval_requested")).approval_id
    await turn.decide(approval, approved=True)
    assert (await turn.until("1.0 turn_finished")).stop_reason == "end_turn"
    assert turn.outcomes == [EXPIRED, EXPIRED]
    assert "tool_call_started" not in turn.events
    assert "did not want this call" in turn.text
    assert PAID[turn.thread] == []
    await turn.decide(approval, approved=True)
    await turn.until("1.0 session_rejected")


@pytest.mark.usefixtures("short_lives")
async def test_a_proposal_that_expires_in_kontekst_fails_and_ends_the_run(clients: Clients) -> None:
    run = await clients.start_run(PAY)
    await run.until("tools_proposed")
    assert await run.rest() == ["tool_failed", "tools_completed", "cancelled"]


@pytest.mark.usefixtures("short_lives")
async def test_an_approval_that_expired_while_no_client_waited_is_no_denial_of_the_next_prompt_in_kontekst(
    clients: Clients,
) -> None:
    await clients.say("t", "r1", PAY)
    while await clients.waiting("t"):
        pass
    run = await clients.start_run("stream 1", "t")
    assert await run.rest() == ["started", "token", "turn_completed", "context_snapshot", "completed"]
    assert PAID["t"] == []
