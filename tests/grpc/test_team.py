"""``WatchTeam``: the subagents of a thread, as any number of clients watch them."""

from collections import defaultdict

import grpc
import pytest

from agui_container.transports.gen.roz.v1 import agent_pb2 as pb
from tests.grpc.client import WAIT, call_text
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.http_requests import answer_approval, get_json, run_over_sse
from tests.grpc.roz_calls import (
    events_until,
    kinds_of,
    session_of,
    start_session,
    wait_for_approval,
    wait_for_turn,
    watch_team,
)
from tests.requirements import requirement
from tests.sockets.process import ServerProcess

WATCHERS = 10


@requirement("roz.team")
def test_a_team_is_watched_by_many_while_it_works_and_afterwards(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        session = talk.all("session_started")[0].session_id
        talk.say("delegate " + call_text("echo", text="ahoy"))
        wait_for_turn(talk)
        teams = [events_until(watch_team(channel, session), "worker_exited") for _ in range(2)]
    assert teams[0] == teams[1]
    kinds = [event.WhichOneof("event") for event in teams[0]]
    assert kinds == [
        *("worker_started", "worker_phase", "worker_tool_call", "worker_phase", "worker_completed", "worker_exited"),
    ]
    started, _, called, phase, completed, exited = teams[0]
    assert started.worker_started.host_id == "delegate"
    assert called.worker_tool_call.tool == "echo"
    assert (phase.worker_phase.phase, phase.worker_phase.mode) == (2, "react")
    assert "ahoy" in completed.worker_completed.result
    assert exited.worker_exited.parent_task_id == session
    assert len({getattr(event, event.WhichOneof("event")).worker_id for event in teams[0]}) == 1


@requirement("roz.team")
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


@requirement("roz.team", "approval.delegated")
def test_a_worker_that_asks_is_watched(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        session = talk.all("session_started")[0].session_id
        talk.say("delegate " + call_text("pay", amount=4))
        call_id = wait_for_approval(talk)
        events = watch_team(channel, session)
        team: list[pb.TeamEvent] = []
        while not team or not team[-1].HasField("worker_approval_requested"):
            team.append(next(events))
        requested = team[-1].worker_approval_requested
        assert (requested.approval_id, requested.tool_name) == (call_id, "pay")
        assert requested.reason == 'it costs money; arguments: {"amount": 4}'
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=True))
        assert wait_for_turn(talk).stop_reason == "end_turn"
        team += events_until(events, "worker_exited")
    seen = [event.WhichOneof("event") for event in team]
    assert seen[:2] == ["worker_started", "worker_phase"]
    assert "worker_approval_resolved" in seen
    assert seen[-2:] == ["worker_completed", "worker_exited"]


@requirement("roz.team")
def test_ten_clients_that_watch_at_the_same_time_get_equal_events_replayed_and_then_live(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("pay", amount=4))
        call_id = wait_for_approval(talk)
        calls = [watch_team(channel, session_of(talk)) for _ in range(WATCHERS)]
        teams = [events_until(call, "worker_approval_requested") for call in calls]
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=True))
        wait_for_turn(talk)
        teams = [[*team, *events_until(call, "worker_exited")] for team, call in zip(teams, calls, strict=True)]
        for team in teams:
            (requested,) = [it.worker_approval_requested for it in team if it.HasField("worker_approval_requested")]
            assert 3500 < requested.timeout_secs <= 3600
            requested.timeout_secs = 0  # the seconds left, when the client came
    assert all(team == teams[0] for team in teams)
    assert kinds_of(teams[0])[0] == "worker_started"
    assert kinds_of(teams[0])[-2:] == ["worker_completed", "worker_exited"]


@requirement("roz.team")
def test_a_watcher_that_leaves_ends_neither_the_run_nor_the_watching_of_others(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("pay", amount=4))
        call_id = wait_for_approval(talk)
        leaving, staying = (watch_team(channel, session_of(talk)) for _ in range(2))
        seen = events_until(staying, "worker_approval_requested")
        next(leaving)
        leaving.cancel()
        with pytest.raises(grpc.RpcError):
            list(leaving)
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=True))
        assert wait_for_turn(talk).stop_reason == "end_turn"
        assert kinds_of([*seen, *events_until(staying, "worker_exited")])[-2:] == ["worker_completed", "worker_exited"]


@requirement("roz.team")
def test_workers_that_work_side_by_side_have_events_of_their_own(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("\n".join(call_text("delegate", task=f"calculate {number}*2") for number in (1, 2)))
        wait_for_turn(talk)
        team = events_until(watch_team(channel, session_of(talk)), "worker_exited", 2)
    by_worker: defaultdict[str, list[pb.TeamEvent]] = defaultdict(list)
    for event in team:
        by_worker[getattr(event, str(event.WhichOneof("event"))).worker_id].append(event)
    assert len(by_worker) == 2
    for events in by_worker.values():
        assert kinds_of(events) == [
            *("worker_started", "worker_phase", "worker_tool_call", "worker_phase", "worker_completed"),
            "worker_exited",
        ]
    assert {event.worker_completed.result[-2:] for event in team if event.HasField("worker_completed")} == {"2.", "4."}


@requirement("roz.team", "approval.delegated")
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


@requirement("roz.team", "approval.delegated")
def test_a_call_that_is_approved_and_fails_was_approved(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("draw"))
        call_id = wait_for_approval(talk)
        events = watch_team(channel, session_of(talk))
        events_until(events, "worker_approval_requested")
        talk.send(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=True))
        wait_for_turn(talk)
        *_, resolved = events_until(events, "worker_approval_resolved")
    assert resolved.worker_approval_resolved.approved


@requirement("roz.team", "protocol.crossed")
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


@requirement("roz.team")
def test_a_thread_of_an_open_session_is_watched_before_its_first_message(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        events = watch_team(channel, session_of(talk))
        talk.send(ping=pb.Ping()).until("pong")
        talk.say("delegate " + call_text("echo", text="ahoy"))
        wait_for_turn(talk)
        assert kinds_of(events_until(events, "worker_exited"))[-1] == "worker_exited"


@requirement("roz.team")
def test_a_thread_of_a_session_that_ends_without_a_message_is_not_found(channel: grpc.Channel) -> None:
    with start_session(channel) as talk:
        events = watch_team(channel, session_of(talk))
        talk.send(cancel_session=pb.CancelSession()).end()
        assert list(talk.rest())[-1] == "1.0 session_completed"
    with pytest.raises(grpc.RpcError) as refused:
        list(events)
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


@requirement("roz.team")
def test_a_run_is_watched_to_its_own_end(server: ServerProcess, channel: grpc.Channel) -> None:
    message = {"id": "u1", "role": "user", "content": "delegate " + call_text("pay", amount=4)}
    run_over_sse(server, {"threadId": "one-run", "runId": "only-this", "messages": [message]})
    assert kinds_of(list(watch_team(channel, "only-this")))[-1] == "worker_approval_requested"


@requirement("roz.team")
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
