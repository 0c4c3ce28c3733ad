"""``WatchTeam``: the subagents of a thread in all its runs, or those of a run, as any number of clients watch them."""

from pathlib import Path

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from tests.protocols.clients import Clients, serving_clients
from tests.protocols.grpc.client import Team, call_text, client_of

pytestmark = pytest.mark.wire

ONE_WORKER = [
    *("worker_started", "worker_phase", "worker_tool_call", "worker_phase", "worker_completed", "worker_exited"),
]


async def next_worker(team: Team) -> list[str]:
    """Read to the end of a worker. Returns the kinds of its events."""
    before = len(team.seen)
    await team.until("worker_exited")
    return [team.kind(event) for event in team.seen[before:]]


def echo_of(text: str) -> str:
    return "delegate " + call_text("echo", text=text)


def results(team: Team) -> list[str]:
    return [completed.result for completed in team.all("worker_completed")]


async def test_a_team_is_watched_live_and_a_failing_worker_fails(clients: Clients) -> None:
    session = await clients.start_session()
    await session.say("delegate fail")
    await session.until("1.0 tool_call_started")
    kinds = await next_worker(await clients.watch_team(session.thread))
    assert kinds[0] == "worker_started"
    assert kinds[-2:] == ["worker_failed", "worker_exited"]


@pytest.mark.parametrize("approved", [True, False])
async def test_a_watcher_learns_the_decision_on_a_call_of_a_worker(clients: Clients, *, approved: bool) -> None:
    session = await clients.start_session()
    await session.say("delegate " + call_text("pay", amount=4))
    asked = await session.until("1.0 approval_requested")
    team = await clients.watch_team(session.thread)
    await team.until("worker_approval_requested")
    await session.decide(asked.approval_id, approved=approved)
    await session.turn()
    await team.until("worker_exited")
    (resolved,) = team.all("worker_approval_resolved")
    assert (resolved.approval_id, resolved.approved) == (asked.approval_id, approved)


async def test_a_thread_is_watched_on_while_a_call_of_the_client_is_open(clients: Clients) -> None:
    tool = {"name": "move", "description": "Move.", "parameters": {"type": "object"}}
    both = f"{call_text('delegate', task=call_text('pay', amount=4))}\n{call_text('move')}"
    await clients.say("watched", "w1", both, tools=[tool])
    team = await clients.watch_team("watched")
    await team.until("worker_approval_requested")
    await clients.answer("watched", approved=True, run="w2")
    await team.until("worker_exited")
    assert (await clients.get("/threads/watched"))["status"] == "client_tool_turn"
    await clients.say("watched", "w3", "delegate calculate 1+1")
    assert (await next_worker(team))[0] == "worker_started", "the next run is watched, too"


async def test_a_task_that_is_not_the_callers_is_not_found(clients: Clients) -> None:
    session = await clients.start_session()
    await session.ask("hello")
    async with client_of(clients.port, {"x-amzn-bedrock-agentcore-runtime-session-id": "s" * 33}) as other:
        for client, task in ((clients, "nobody's"), (other, session.thread)):
            with pytest.raises(GRPCError) as refused:
                await (await client.watch_team(task)).rest()
            assert refused.value.status is Status.NOT_FOUND


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/runs.db" if request.param == "sqlite" else "memory"


async def test_a_thread_is_replayed_from_its_first_run_and_a_run_alone(store: str) -> None:
    async with serving_clients(store=store) as clients:
        session = await clients.start_session()
        for text in (echo_of("one"), "hello", echo_of("two")):
            await session.ask(text)
        team = await clients.watch_team(session.thread)
        assert [await next_worker(team) for _ in range(2)] == [ONE_WORKER, ONE_WORKER]
        assert ["one" in result for result in results(team)] == [True, False]
        assert ["two" in result for result in results(team)] == [False, True]
        by_run = [await clients.watch_team(run) for run in await clients.runs(session.thread)]
        assert [await each.rest() for each in by_run] == [ONE_WORKER, [], ONE_WORKER]
        assert [results(each) for each in by_run] == [results(team)[:1], [], results(team)[1:]]


async def watch_first_worker(clients: Clients) -> Team:
    session = await clients.start_session("watched")
    await session.ask(echo_of("one"))
    team = await clients.watch_team("watched")
    assert await next_worker(team) == ONE_WORKER
    return team


async def test_a_client_that_watches_between_turns_gets_the_past_ones_and_then_each_next_one(store: str) -> None:
    async with serving_clients(store=store) as clients:
        team = await watch_first_worker(clients)
        session = await clients.start_session("watched")
        for text in ("two", "three"):
            await session.ask(echo_of(text))
            assert await next_worker(team) == ONE_WORKER
            assert text in results(team)[-1]


async def test_a_client_that_watches_between_turns_is_told_when_the_thread_is_deleted(store: str) -> None:
    async with serving_clients(store=store) as clients:
        team = await watch_first_worker(clients)
        assert (await clients.http.delete("/threads/watched")).is_success
        assert await team.rest() == []
