"""An answer that comes after that of another client is refused, and harms neither the other client nor its run.

The clients over gRPC do not look for runs of others by themselves here, so their answers are always late.
"""

import asyncio
from collections.abc import Sequence

import pytest

from agui_container.transports.conversation import following
from agui_container.transports.gen.kontekst import kontekst_pb2 as kontekst
from agui_container.transports.gen.roz.v1 import agent_pb2 as roz
from tests.behaviour.approval_tools import PAID
from tests.behaviour.over_grpc import ClientCall
from tests.engine.doubles import WAIT
from tests.grpc.client import call_text
from tests.grpc.two_clients import DENIED, DENIED_ELSEWHERE, UNKNOWN_ELSEWHERE, Clients, RozTurn, two_clients
from tests.requirements import requirement

PAY = call_text("pay", amount=5)
LOOK = [roz.ToolSchema(name="look", description="Look.")]

each_policy = pytest.mark.parametrize("on_busy", ["reject", "enqueue", "interrupt"])


@pytest.fixture(autouse=True)
def _no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_SECONDS", 2 * WAIT)


async def wait_until_followed(clients: Clients, thread: str) -> None:
    """Wait until both clients read the thread's second run, which is the other client's and goes on."""
    async with asyncio.timeout(WAIT):
        while True:
            newest, _ = await clients.runs(thread)
            assert (newest["runId"], newest["status"]) == ("over-sse", "running")
            if newest["readers"] == 2:
                return


# --- roz --------------------------------------------------------------------------------------------------------------


async def ask_client(clients: Clients) -> tuple[RozTurn, str]:
    """Begin a turn in which the agent calls a tool of the client. Return it with the id of the call."""
    turn = RozTurn(clients.grpc.new_session())
    await turn.say(call_text("look"), tools=LOOK)
    return turn, (await turn.until("tool_call_requested")).call_id


@requirement("roz.approvals", "protocol.crossed")
@each_policy
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


@requirement("roz.approvals", "protocol.crossed")
@each_policy
@pytest.mark.parametrize("approved", [True, False])
async def test_a_late_decision_in_roz_leaves_the_other_clients_run_alone_and_follows_it(
    on_busy: str,
    approved: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    async with two_clients(on_busy=on_busy) as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say(call_text("order"))
        approval = (await turn.until("approval_requested")).approval_id
        async with clients.approving(turn.thread):
            await turn.decide(approval, approved=approved)
            await turn.until("session_rejected")
            await wait_until_followed(clients, turn.thread)
            assert turn.since("approval_requested") == ["session_rejected"]


@requirement("roz.tools", "protocol.crossed")
@each_policy
async def test_a_late_result_in_roz_is_refused_and_begins_no_second_run(on_busy: str) -> None:
    async with two_clients(on_busy=on_busy) as clients:
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


@requirement("caller.loop")
async def test_of_a_thread_that_another_client_has_continued_only_the_last_messages_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with two_clients() as clients:
        turn, call_id = await ask_client(clients)
        result = {"id": "m2", "role": "tool", "toolCallId": call_id, "content": "seen over SSE"}
        await clients.run(turn.thread, messages=[result])
        monkeypatch.setattr(clients.service.cluster.store.threads, "changes", None)
        await turn.send(tool_result=roz.ToolResult(tool_call_id=call_id, success=True, result="seen in roz"))
        assert (await turn.until("turn_finished")).stop_reason == "end_turn"
        assert turn.all("tool_call_finished")[0].result_summary == "seen over SSE"


@requirement("roz.tools", "protocol.crossed")
async def test_a_late_result_follows_every_run_of_the_other_client_in_order() -> None:
    async with two_clients() as clients:
        turn, call_id = await ask_client(clients)
        result = {"id": "m2", "role": "tool", "toolCallId": call_id, "content": "seen over SSE"}
        await clients.run(turn.thread, messages=[result])
        await clients.run(turn.thread, runId="r3", messages=[{"id": "m3", "role": "user", "content": "stream 1"}])
        await turn.send(tool_result=roz.ToolResult(tool_call_id=call_id, success=True, result="seen in roz"))
        assert (await turn.until("turn_finished")).stop_reason == "end_turn"
        assert turn.text.index("seen over SSE") < turn.text.index("hello world")
        assert [each.result_summary for each in turn.all("tool_call_finished")] == ["seen over SSE"]
        assert turn.kinds.count("session_rejected") == 1
        assert len(await clients.runs(turn.thread)) == 3


@requirement("roz.tools", "protocol.crossed")
async def test_a_result_for_a_call_that_the_thread_has_left_behind_is_refused() -> None:
    async with two_clients() as clients:
        turn, call_id = await ask_client(clients)
        await clients.run(turn.thread, messages=[{"id": "m2", "role": "user", "content": "never mind"}])
        await turn.send(tool_result=roz.ToolResult(tool_call_id=call_id, success=True, result="seen"))
        await turn.until("turn_finished")
        assert turn.since("tool_call_requested")[:2] == ["session_rejected", "tool_call_finished"]
        assert len(await clients.runs(turn.thread)) == 2


@requirement("roz.control", "protocol.crossed")
@each_policy
async def test_a_late_cancel_in_roz_ends_the_turn_and_not_the_other_clients_run(on_busy: str) -> None:
    async with two_clients(on_busy=on_busy) as clients:
        turn = RozTurn(clients.grpc.new_session())
        await turn.say(call_text("order"))
        await turn.until("approval_requested")
        async with clients.approving(turn.thread):
            await turn.send(cancel_turn=roz.CancelTurn())
            assert (await turn.until("turn_finished")).stop_reason == "cancelled"
            assert turn.outcomes == [UNKNOWN_ELSEWHERE]
            assert [run["status"] for run in await clients.runs(turn.thread)] == ["running", "interrupted"]


@requirement("roz.approvals", "protocol.crossed")
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


# --- kontekst ---------------------------------------------------------------------------------------------------------

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
    """The events to the end of a run."""
    await run.end()
    events = []
    while (event := await run.receive()) is not None:
        events.append(event)
    return events


@requirement("kontekst.asks", "protocol.crossed")
@each_policy
async def test_a_late_approval_in_kontekst_is_ignored_and_the_denial_is_told(on_busy: str) -> None:
    async with two_clients(on_busy=on_busy) as clients:
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


@requirement("kontekst.asks", "protocol.crossed")
@each_policy
async def test_a_late_approval_in_kontekst_leaves_the_other_clients_run_alone_and_follows_it(on_busy: str) -> None:
    async with two_clients(on_busy=on_busy) as clients:
        run, thread, call_id = await propose(clients, call_text("order"))
        async with clients.approving(thread):
            await approve(run, call_id)
            await wait_until_followed(clients, thread)


@requirement("kontekst.runs", "protocol.crossed")
@each_policy
async def test_a_late_cancel_in_kontekst_ends_the_call_and_not_the_other_clients_run(on_busy: str) -> None:
    async with two_clients(on_busy=on_busy) as clients:
        run, thread, _ = await propose(clients, call_text("order"))
        async with clients.approving(thread):
            await run.send(kontekst.RunCommand(cancel=kontekst.CancelRunCommand()))
            assert [event.WhichOneof("event") for event in await rest(run)] == ["cancelled"]
            assert [found["status"] for found in await clients.runs(thread)] == ["running", "interrupted"]
