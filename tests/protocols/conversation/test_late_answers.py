"""An answer that comes after that of another client is refused, and harms neither the other client nor its run.

The clients over gRPC do not look for runs of others by themselves here, so their answers are always late.
"""

import asyncio
from collections.abc import Sequence

import pytest

from agui_container.protocols.conversation import following
from agui_container.protocols.gen import agent_pb2 as roz
from agui_container.protocols.gen import kontekst_pb2 as kontekst
from tests.behaviour.approval_tools import PAID
from tests.behaviour.over_grpc import ClientCall
from tests.engine.doubles import WAIT
from tests.protocols.conversation.two_clients import DENIED, DENIED_ELSEWHERE, Clients, RozTurn, two_clients
from tests.protocols.grpc.client import call_text

pytestmark = [pytest.mark.wire, pytest.mark.processes]

PAY = call_text("pay", amount=5)
LOOK = [roz.ToolSchema(name="look", description="Look.")]


@pytest.fixture(autouse=True)
def _no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_SECONDS", 2 * WAIT)


async def ask_client(clients: Clients) -> tuple[RozTurn, str]:
    """Begin a turn in which the agent calls a tool of the client. Return it with the id of the call."""
    turn = RozTurn(clients.grpc.new_session())
    await turn.say(call_text("look"), tools=LOOK)
    return turn, (await turn.until("tool_call_requested")).call_id


@pytest.mark.parametrize("on_busy", ["reject", "enqueue", "interrupt"])
async def test_a_late_approval_in_roz_is_refused_and_the_denial_is_told(on_busy: str) -> None:
    async with two_clients(on_busy=on_busy) as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say(PAY)
        approval = (await turn.until("approval_requested")).approval_id
        await clients.answer(turn.thread, approved=False)
        await turn.decide(approval, approved=True)
        assert f"no call '{approval}' waits" in (await turn.until("session_rejected")).message
        assert (await turn.until("turn_finished")).stop_reason == "end_turn"
        assert turn.outcomes == [DENIED_ELSEWHERE]
        assert "tool_call_started" not in turn.kinds
        assert "denied" in turn.text
        assert len(await clients.runs(turn.thread)) == 2
        assert PAID[turn.thread] == []


async def test_a_late_result_in_roz_is_refused_and_begins_no_second_run() -> None:
    async with two_clients() as clients:
        turn, call_id = await ask_client(clients)
        result = {"id": "m2", "role": "tool", "toolCallId": call_id, "content": "seen over SSE"}
        await clients.run(turn.thread, messages=[result])
        await turn.send(tool_result=roz.ToolResult(tool_call_id=call_id, success=True, result="seen in roz"))
        await turn.until("turn_finished")
        assert turn.since("tool_call_requested")[:2] == ["session_rejected", "tool_call_finished"]
        assert turn.all("tool_call_finished")[0].result_summary == "seen over SSE"
        assert "seen over SSE" in turn.text
        assert len(await clients.runs(turn.thread)) == 2
        assert ("tool", "seen in roz") not in await clients.messages(turn.thread)


@pytest.mark.parametrize("is_valid_first", [True, False])
async def test_of_two_sessions_that_decide_at_once_the_one_that_is_behind_is_refused_and_both_tell_the_same(
    is_valid_first: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    async with two_clients() as clients:
        one = RozTurn(clients.grpc.new_session())
        await one.say(PAY)
        approval = (await one.until("approval_requested")).approval_id
        other = RozTurn(clients.on_thread(one.thread).new_session())
        await other.say("hello")
        await other.until("turn_started")
        await other.until("approval_requested")
        decisions = [(other, False), (one, True)] if is_valid_first else [(one, True), (other, False)]
        await asyncio.gather(*(turn.decide(approval, approved=approved) for turn, approved in decisions))
        await one.until("session_rejected")
        await one.decide((await one.until("approval_requested")).approval_id, approved=True)
        await one.until("session_rejected")
        await asyncio.gather(one.until("turn_finished"), other.until("turn_finished"))
        assert other.outcomes == [DENIED]
        assert one.outcomes == [DENIED_ELSEWHERE]
        assert one.text == other.text != ""
        assert PAID[one.thread] == []


Run = ClientCall[kontekst.RunCommand, kontekst.RunEvent]


async def propose(clients: Clients, prompt: str) -> tuple[Run, str, str]:
    """Begin a run that proposes one call. Returns the ids of its thread and of the call, too."""
    run = await clients.grpc.start_run(prompt)
    thread = ""
    while (event := await run.receive()) is not None:
        thread = thread or event.started.session_id
        if event.HasField("tools_proposed"):
            return run, thread, event.tools_proposed.calls[0].call_id
    raise AssertionError("the run has ended without a proposal")


async def approve(run: Run, call_id: str) -> None:
    await run.send(kontekst.RunCommand(approve_tool=kontekst.ApproveToolCommand(call_id=call_id)))


async def rest(run: Run) -> Sequence[kontekst.RunEvent]:
    await run.end()
    events = []
    while (event := await run.receive()) is not None:
        events.append(event)
    return events


async def test_a_late_approval_in_kontekst_is_ignored_and_the_denial_is_told() -> None:
    async with two_clients() as clients:
        run, thread, call_id = await propose(clients, PAY)
        await clients.answer(thread, approved=False)
        await approve(run, call_id)
        events = await rest(run)
        tools = [event for event in events if (event.WhichOneof("event") or "").startswith("tool")]
        assert [event.WhichOneof("event") for event in tools] == ["tool_failed", "tools_completed"]
        assert "denied" in tools[0].tool_failed.error
        assert events[-1].HasField("cancelled")
        assert len(await clients.runs(thread)) == 2
        assert PAID[thread] == []


async def test_a_proposal_of_a_client_of_kontekst_that_sends_no_more_is_cancelled() -> None:
    async with two_clients() as clients:
        run, thread, _ = await propose(clients, PAY)
        assert (await rest(run))[-1].HasField("cancelled")
        assert PAID[thread] == []
