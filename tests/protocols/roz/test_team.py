"""``WatchTeam``: the subagents of a thread, as any number of clients watch them."""

import grpc
import pytest

from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.conftest import ASSISTANT, Dial
from tests.protocols.grpc.client import WAIT, call_text
from tests.protocols.grpc.http_requests import answer_approval, get_json, run_over_sse
from tests.protocols.roz.calls import (
    events_until,
    kinds_of,
    session_of,
    start_session,
    wait_for_approval,
    wait_for_turn,
    watch_team,
)
from tests.server.sockets.process import ServerProcess

pytestmark = [pytest.mark.wire, pytest.mark.processes]


def test_a_team_is_watched_live_and_a_failing_worker_fails(dial: Dial) -> None:
    with ServerProcess(**ASSISTANT) as server:
        channel = dial(server)
        with start_session(channel) as talk:
            session = talk.all("session_started")[0].session_id
            talk.say("delegate fail")
            talk.until("activity_update")
            talk.until("1.0 tool_call_started")
            kinds = kinds_of(events_until(watch_team(channel, session), "worker_exited"))
    assert kinds[0] == "worker_started"
    assert kinds[-2:] == ["worker_failed", "worker_exited"]


@pytest.mark.parametrize("approved", [True, False])
def test_a_watcher_learns_the_decision_on_a_call_of_a_worker(channel: grpc.Channel, *, approved: bool) -> None:
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("pay", amount=4))
        call_id = wait_for_approval(talk)
        events = watch_team(channel, session_of(talk))
        events_until(events, "worker_approval_requested")
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=approved))
        wait_for_turn(talk)
        team = events_until(events, "worker_exited")
    (resolved,) = [event.worker_approval_resolved for event in team if event.HasField("worker_approval_resolved")]
    assert (resolved.approval_id, resolved.approved) == (call_id, approved)
    assert kinds_of(team)[-1] == "worker_exited"


def test_a_thread_is_watched_on_while_a_call_of_the_client_is_open(
    server: ServerProcess, channel: grpc.Channel
) -> None:
    tool = {"name": "move", "description": "Move.", "parameters": {"type": "object"}}
    both = f"{call_text('delegate', task=call_text('pay', amount=4))}\n{call_text('move')}"
    message = {"id": "u1", "role": "user", "content": both}
    run_over_sse(server, {"threadId": "watched", "runId": "w1", "messages": [message], "tools": [tool]})
    events = watch_team(channel, "watched")
    events_until(events, "worker_approval_requested")
    answer_approval(server, "watched", "w2", approved=True)
    events_until(events, "worker_exited")
    assert get_json(server, "/threads/watched")["status"] == "client_tool_turn"
    message = {"id": "u2", "role": "user", "content": "delegate calculate 1+1"}
    run_over_sse(server, {"threadId": "watched", "runId": "w3", "messages": [message]})
    assert kinds_of(events_until(events, "worker_exited"))[0] == "worker_started", "the next run is watched, too"


def test_a_task_that_is_not_the_callers_is_not_found(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        list(watch_team(channel, "nobody's"))
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    with start_session(channel) as talk:
        session = talk.all("session_started")[0].session_id
        talk.say("hello")
        wait_for_turn(talk)
    header = [("x-amzn-bedrock-agentcore-runtime-session-id", "s" * 33)]
    call = channel.unary_stream(
        "/roz.v1.AgentService/WatchTeam",
        request_serializer=pb.WatchTeamRequest.SerializeToString,
        response_deserializer=pb.TeamEvent.FromString,
    )
    with pytest.raises(grpc.RpcError) as refused:
        list(call(pb.WatchTeamRequest(task_id=session), timeout=WAIT, metadata=header))
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
