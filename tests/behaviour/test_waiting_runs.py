"""Runs that wait for their thread: a deletion ends them first, and a cancelled one keeps its message and its place."""

import pytest

from tests.behaviour.client import Client, begin_run, outcome
from tests.behaviour.test_busy import conversation
from tests.conftest import Connect
from tests.engine.doubles import Json, ask, eventually
from tests.waiting_agent import WaitingAgent, run_id


def saying(run: str) -> Json:
    return ask(run=run, messages=[{"id": run, "role": "user", "content": f"said in {run}"}])


async def statuses(client: Client) -> dict[str, str]:
    listed = (await client.command({"command": {"type": "runs.list"}}))["runs"]
    return {run["runId"]: run["status"] for run in listed}


@pytest.mark.durable
async def test_deleting_a_thread_cancels_the_runs_that_wait_and_none_of_them_begins(connect: Connect) -> None:
    agent = WaitingAgent(run_id)
    client = await connect(agent, on_busy="enqueue")
    first = await begin_run(client, "r1")
    others = [await client.start(saying(run)) for run in ("r2", "r3")]
    deleted = await client.command({"command": {"type": "threads.delete", "threadId": "t1"}})
    assert deleted["deleted"] is True
    assert [outcome(await stream.rest()) for stream in (first, *others)] == ["cancelled"] * 3
    await eventually(lambda: not client.service.registry.lives)
    assert agent.started_run_ids == ["r1"]
    assert (await client.command({"command": {"type": "threads.list"}}))["threads"] == []
    assert await statuses(client) == {}


@pytest.mark.durable
async def test_a_message_whose_run_is_cancelled_while_it_waits_is_kept_in_its_place(connect: Connect) -> None:
    agent = WaitingAgent(run_id)
    client = await connect(agent, on_busy="enqueue")
    first = await begin_run(client, "r1")
    second, third = [await client.start(saying(run)) for run in ("r2", "r3")]
    assert await statuses(client) == {"r1": "running", "r2": "queued", "r3": "queued"}
    await client.command({"command": {"type": "cancel", "threadId": "t1", "runId": "r2"}})
    assert outcome(await second.rest()) == "cancelled"
    agent.may_end.set()
    assert [outcome(await stream.rest()) for stream in (first, third)] == ["success", "success"]
    await eventually(lambda: not client.service.registry.lives)
    assert agent.started_run_ids == ["r1", "r3"]
    assert sorted(await conversation(client)) == ["hi", "r1", "r3", "said in r2", "said in r3"]
    assert await statuses(client) == {"r1": "finished", "r2": "cancelled", "r3": "finished"}
