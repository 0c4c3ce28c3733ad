"""``WatchTeam`` of a thread has the subagents of all its runs, in order; of a run, that run's own."""

from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from agui_container.transports.gen.roz.v1 import agent_pb2 as pb
from tests.grpc.client import call_text
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.http_requests import delete, get_json, post_json, run_over_sse
from tests.grpc.roz_calls import events_until, kinds_of, session_of, start_session, wait_for_turn, watch_team
from tests.requirements import requirement
from tests.sockets.process import ServerProcess, Servers

ONE_WORKER = [
    *("worker_started", "worker_phase", "worker_tool_call", "worker_phase", "worker_completed", "worker_exited"),
]
WITHOUT_TOOL = ["worker_started", "worker_phase", "worker_completed", "worker_exited"]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a database."""
    return f"sqlite:///{tmp_path_factory.mktemp('data')}/runs.db"


@pytest.fixture(params=["memory", "sqlite"])
def server(request: pytest.FixtureRequest, servers: Servers, database: str) -> ServerProcess:
    """The assistant, with runs in memory or in a database."""
    return servers(**ASSISTANT, AGUI_STORE=database) if request.param == "sqlite" else servers(**ASSISTANT)


def runs_of(server: ServerProcess, thread: str) -> list[str]:
    """Ids of a thread's runs, in order."""
    return [run["runId"] for run in reversed(get_json(server, "/runs")["runs"]) if run["threadId"] == thread]


def results(team: list[pb.TeamEvent]) -> list[str]:
    return [event.worker_completed.result for event in team if event.HasField("worker_completed")]


@requirement("roz.team")
def test_a_thread_is_replayed_from_its_first_run_and_a_run_alone(server: ServerProcess, dial: Dial) -> None:
    channel = dial(server)
    with start_session(channel) as talk:
        session = session_of(talk)
        for said in ("delegate " + call_text("echo", text="one"), "hello", "delegate " + call_text("echo", text="two")):
            talk.say(said)
            wait_for_turn(talk)
        team = events_until(watch_team(channel, session), "worker_exited", 2)
        assert kinds_of(team) == 2 * ONE_WORKER
        assert ["one" in result for result in results(team)] == [True, False]
        assert ["two" in result for result in results(team)] == [False, True]
        by_run = [list(watch_team(channel, run)) for run in runs_of(server, session)]
    assert [kinds_of(events) for events in by_run] == [ONE_WORKER, [], ONE_WORKER]
    assert [results(events) for events in by_run] == [results(team)[:1], [], results(team)[1:]]


@requirement("roz.team")
def test_a_thread_whose_last_turn_had_no_subagent_is_replayed_and_then_followed(
    server: ServerProcess, dial: Dial
) -> None:
    channel = dial(server)
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("echo", text="one"))
        wait_for_turn(talk)
        talk.say("hello")
        wait_for_turn(talk)
        assert kinds_of(events_until(watch_team(channel, session_of(talk)), "worker_exited")) == ONE_WORKER
        talk.say("delegate wait 1")
        talk.until("1.0 tool_call_started")
        live = watch_team(channel, session_of(talk))
        assert kinds_of(events_until(live, "worker_exited")) == ONE_WORKER
        assert kinds_of(events_until(live, "worker_exited")) == WITHOUT_TOOL


@requirement("roz.team")
def test_a_client_that_watches_between_turns_gets_the_past_ones_and_then_each_next_one(
    server: ServerProcess, dial: Dial
) -> None:
    channel = dial(server)
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("echo", text="one"))
        wait_for_turn(talk)
        live = watch_team(channel, session_of(talk))
        assert kinds_of(events_until(live, "worker_exited")) == ONE_WORKER
        for said in ("two", "three"):
            talk.say("delegate " + call_text("echo", text=said))
            wait_for_turn(talk)
            team = events_until(live, "worker_exited")
            assert kinds_of(team) == ONE_WORKER
            assert [said in result for result in results(team)] == [True]


@requirement("roz.team")
def test_a_thread_without_runs_is_watched_from_its_first_one(server: ServerProcess, dial: Dial) -> None:
    channel = dial(server)
    message = {"id": "u1", "role": "user", "content": "hello"}
    run_over_sse(server, {"threadId": f"source-{server.port}", "runId": "s1", "messages": [message]})
    fork = post_json(server, f"/threads/source-{server.port}/fork", {"messageId": "u1"})["threadId"]
    live = watch_team(channel, fork)
    with start_session(channel, [("agui-thread-id", fork)]) as talk:
        talk.say("delegate " + call_text("echo", text="one"))
        wait_for_turn(talk)
    assert kinds_of(events_until(live, "worker_exited")) == ONE_WORKER


@requirement("roz.team")
def test_a_client_that_watches_between_turns_is_told_when_the_thread_is_deleted(
    server: ServerProcess, dial: Dial
) -> None:
    live = watch_replay(server, dial)
    assert delete(server, f"/threads/{live.thread}") == 200
    assert list(live.events) == []
    assert live.events.code() is grpc.StatusCode.OK


@requirement("roz.team")
def test_a_client_that_watches_between_turns_is_told_when_its_deadline_has_passed(
    server: ServerProcess, dial: Dial
) -> None:
    with pytest.raises(grpc.RpcError) as ended:
        next(watch_replay(server, dial, timeout=2).events)
    assert ended.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@requirement("roz.team")
def test_a_client_that_watches_between_turns_is_told_when_the_server_stops(dial: Dial) -> None:
    with ServerProcess(**ASSISTANT) as server:
        live = watch_replay(server, dial)
        server.term()
        with pytest.raises(grpc.RpcError) as ended:
            next(live.events)
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        server.wait()
        assert [line for line in server.log if "Traceback" in line] == []


@dataclass(frozen=True)
class Watching:
    """A call that watches a thread after its only turn. It has had that turn's events."""

    thread: str
    events: Any


def watch_replay(server: ServerProcess, dial: Dial, timeout: float = 30) -> Watching:
    """Have one turn with a subagent, and watch the thread until that turn has been replayed."""
    channel = dial(server)
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("echo", text="one"))
        wait_for_turn(talk)
        thread = session_of(talk)
    events = watch_team(channel, thread, timeout)
    assert kinds_of(events_until(events, "worker_exited")) == ONE_WORKER
    return Watching(thread, events)
