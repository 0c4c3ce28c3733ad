"""``WatchTeam`` of a thread has the subagents of all its runs, in order; of a run, that run's own."""

import grpc
import pytest

from agui_container.protocols.gen import agent_pb2 as pb
from tests.protocols.conftest import ASSISTANT, Dial
from tests.protocols.grpc.client import call_text
from tests.protocols.grpc.http_requests import delete, get_json
from tests.protocols.roz.calls import events_until, kinds_of, session_of, start_session, wait_for_turn, watch_team
from tests.server.sockets.process import ServerProcess, Servers

pytestmark = [pytest.mark.wire, pytest.mark.processes]

ONE_WORKER = [
    *("worker_started", "worker_phase", "worker_tool_call", "worker_phase", "worker_completed", "worker_exited"),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('data')}/runs.db"


@pytest.fixture(params=["memory", "sqlite"])
def server(request: pytest.FixtureRequest, servers: Servers, database: str) -> ServerProcess:
    return servers(**ASSISTANT, AGUI_STORE=database) if request.param == "sqlite" else servers(**ASSISTANT)


def runs_of(server: ServerProcess, thread: str) -> list[str]:
    return [run["runId"] for run in reversed(get_json(server, "/runs")["runs"]) if run["threadId"] == thread]


def results(team: list[pb.TeamEvent]) -> list[str]:
    return [event.worker_completed.result for event in team if event.HasField("worker_completed")]


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


def test_a_client_that_watches_between_turns_is_told_when_the_thread_is_deleted(
    server: ServerProcess, dial: Dial
) -> None:
    channel = dial(server)
    with start_session(channel) as talk:
        talk.say("delegate " + call_text("echo", text="one"))
        wait_for_turn(talk)
        thread = session_of(talk)
    live = watch_team(channel, thread)
    assert kinds_of(events_until(live, "worker_exited")) == ONE_WORKER
    assert delete(server, f"/threads/{thread}") == 200
    assert list(live) == []
    assert live.code() is grpc.StatusCode.OK
