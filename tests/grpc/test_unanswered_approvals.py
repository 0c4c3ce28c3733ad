"""An approval that ends without a decision, because its turn is cancelled or because it expires."""

import time

import pytest

from agui_container.agents.assistant.approvals.approvals import Approvals
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as roz
from tests.behaviour.approval_tools import PAID
from tests.grpc.client import call_text
from tests.grpc.two_clients import RozTurn, two_clients
from tests.requirements import requirement

PAY = call_text("pay", amount=5)
TWICE = f"{PAY}\n{call_text('pay', amount=6)}"
CANCELLED = {"approved": False, "cancelled": True}
EXPIRED = {"approved": False, "expired": True}


@pytest.fixture
def short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let approvals expire within a second."""
    monkeypatch.setattr(Approvals.__init__, "__defaults__", (time.time, 1.0, None, 0))


# --- cancelled --------------------------------------------------------------------------------------------------------


@requirement("roz.approvals", "roz.control")
async def test_the_approvals_of_a_cancelled_turn_are_resolved_as_cancelled() -> None:
    async with two_clients() as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say(TWICE)
        await turn.until("approval_requested")
        await turn.decide((await turn.until("approval_requested")).approval_id, approved=True)
        await turn.send(cancel_turn=roz.CancelTurn())
        assert (await turn.until("turn_finished")).stop_reason == "cancelled"
        assert turn.outcomes == [CANCELLED, CANCELLED]
        assert PAID[turn.thread] == []


@requirement("roz.approvals", "roz.control")
async def test_the_approval_of_a_turn_that_a_message_interrupts_is_resolved_as_cancelled() -> None:
    async with two_clients(on_busy="interrupt") as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say(PAY)
        await turn.until("approval_requested")
        await turn.send(user_message=roz.UserMessage(content="hello"))
        assert (await turn.until("turn_finished")).stop_reason == "cancelled"
        assert turn.outcomes == [CANCELLED]
        assert (await turn.until("turn_finished")).stop_reason == "end_turn"


# --- expired ----------------------------------------------------------------------------------------------------------


@requirement("roz.approvals")
@pytest.mark.usefixtures("short_lives")
async def test_approvals_that_expire_in_roz_are_resolved_then_and_the_model_is_told() -> None:
    async with two_clients() as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say(TWICE)
        await turn.until("approval_requested")
        approval = (await turn.until("approval_requested")).approval_id
        await turn.decide(approval, approved=True)
        assert (await turn.until("turn_finished")).stop_reason == "end_turn"
        assert turn.outcomes == [EXPIRED, EXPIRED]
        assert "tool_call_started" not in turn.kinds
        assert "did not want this call" in turn.text
        assert PAID[turn.thread] == []
        await turn.decide(approval, approved=True)
        await turn.until("session_rejected")


@requirement("kontekst.asks")
@pytest.mark.usefixtures("short_lives")
async def test_a_proposal_that_expires_in_kontekst_fails_and_ends_the_run() -> None:
    async with two_clients() as clients:
        run = await clients.grpc.start_run(PAY)
        kinds = ["started"]
        while kinds[-1] != "cancelled":
            event = await run.receive()
            assert event is not None
            kinds.append(str(event.WhichOneof("event")))
        assert kinds[kinds.index("tools_proposed") + 1 :] == ["tool_failed", "tools_completed", "cancelled"]
