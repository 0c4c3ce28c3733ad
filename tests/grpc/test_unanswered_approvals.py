"""An approval that ends without a decision, because its turn is cancelled or because it expires."""

import time

import pytest

from agui_container.agents.approvals.approvals import Approvals
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.behaviour.approval_tools import PAID
from tests.grpc.client import call_text
from tests.grpc.two_clients import CANCELLED, EXPIRED, Clients, RozTurn, two_clients
from tests.requirements import requirement

PAY = call_text("pay", amount=5)
TWICE = f"{PAY}\n{call_text('pay', amount=6)}"
ANSWERED = ["started", "token", "turn_completed", "context_snapshot", "completed"]
"""Kinds of the events of a run of kontekst without tools."""


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
        _, kinds = await kinds_to_the_end(clients, PAY)
    assert kinds[kinds.index("tools_proposed") + 1 :] == ["tool_failed", "tools_completed", "cancelled"]


@requirement("kontekst.asks")
@pytest.mark.usefixtures("short_lives")
async def test_the_next_run_works_after_the_client_of_kontekst_has_let_a_proposal_expire() -> None:
    async with two_clients() as clients:
        thread, _ = await kinds_to_the_end(clients, PAY)
        assert (await kinds_to_the_end(clients, "hello", thread))[1] == ANSWERED


@requirement("kontekst.asks")
async def test_the_next_run_works_after_an_approval_has_expired_that_no_client_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Approvals.__init__, "__defaults__", (lambda: time.time() - 1000, 999.0, None, 0))
    async with two_clients() as clients:
        thread = "left"
        await clients.run(thread, messages=[{"id": "m1", "role": "user", "content": PAY}])
        assert (await kinds_to_the_end(clients, "hello", thread))[1] == ANSWERED
        assert (await kinds_to_the_end(clients, "hello", thread))[1] == ANSWERED
        assert PAID[thread] == []


async def kinds_to_the_end(clients: Clients, prompt: str, thread: str = "") -> tuple[str, list[str]]:
    """Run kontekst to its last event. Returns the thread and the kinds of the events, equal ones in a row as one."""
    run = await clients.grpc.start_run(prompt, thread)
    kinds: list[str] = []
    while not kinds or kinds[-1] not in {"completed", "cancelled", "failed"}:
        event = await run.receive()
        assert event is not None
        thread = event.started.session_id or thread
        kinds += [kind for kind in [str(event.WhichOneof("event"))] if kinds[-1:] != [kind]]
    return thread, kinds
