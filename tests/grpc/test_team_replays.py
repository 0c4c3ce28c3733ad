"""``WatchTeam`` of a thread has the subagents of all its runs, in order; of a run, that run's own."""

import pytest

from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from tests.grpc.conftest import ASSISTANT, Dial
from tests.grpc.test_crossing import get_json
from tests.grpc.test_roz import calling, session_of, start_session, turned
from tests.grpc.test_team import kinds, until, watching
from tests.requirements import requirement
from tests.sockets.process import ServerProcess, Servers

ONE_WORKER = [
    *("worker_started", "worker_phase", "worker_tool_call", "worker_phase", "worker_completed", "worker_exited"),
]


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
        for said in ("delegate " + calling("echo", text="one"), "hello", "delegate " + calling("echo", text="two")):
            talk.say(said)
            turned(talk)
        team = list(watching(channel, session))
        assert kinds(team) == 2 * ONE_WORKER
        assert ["one" in result for result in results(team)] == [True, False]
        assert ["two" in result for result in results(team)] == [False, True]
        by_run = [list(watching(channel, run)) for run in runs_of(server, session)]
    assert [kinds(events) for events in by_run] == [ONE_WORKER, [], ONE_WORKER]
    assert [results(events) for events in by_run] == [results(team)[:1], [], results(team)[1:]]


@requirement("roz.team")
def test_a_thread_whose_last_turn_had_no_subagent_is_replayed_and_then_followed(
    server: ServerProcess, dial: Dial
) -> None:
    channel = dial(server)
    with start_session(channel) as talk:
        talk.say("delegate " + calling("echo", text="one"))
        turned(talk)
        talk.say("hello")
        turned(talk)
        assert kinds(list(watching(channel, session_of(talk)))) == ONE_WORKER
        talk.say("delegate wait 1")
        talk.until("1.0 tool_call_started")
        live = watching(channel, session_of(talk))
        assert kinds(until(live, "worker_exited")) == ONE_WORKER
        assert kinds(list(live)) == ["worker_started", "worker_phase", "worker_completed", "worker_exited"]
