"""A second run on a busy thread: it is refused, queued, or replaces the first, by setting or by request."""

import pytest

from agui_container.engine.limits import CapacityLimits
from tests.behaviour.client import Client, Refused, begin_run, outcome, types
from tests.behaviour.test_threads import wait_for_thread
from tests.conftest import Connect
from tests.engine.doubles import Json, ask, eventually
from tests.waiting_agent import WaitingAgent, run_id


async def conversation(client: Client) -> list[str]:
    return [message["content"] for message in (await wait_for_thread(client))["messages"]]


@pytest.mark.durable
@pytest.mark.wire
async def test_enqueued_runs_follow_in_order(connect: Connect) -> None:
    agent = WaitingAgent(run_id)
    client = await connect(agent, on_busy="enqueue")
    first = await begin_run(client, "r1")
    others = [await client.start(ask(run=run)) for run in ("r2", "r3")]
    assert agent.started_run_ids == ["r1"]
    agent.may_end.set()
    assert outcome(await first.rest()) == "success"
    assert [outcome(await other.rest()) for other in others] == ["success", "success"]
    assert agent.started_run_ids == ["r1", "r2", "r3"]


async def test_a_queued_run_keeps_messages_that_were_added_while_it_waited(connect: Connect) -> None:
    agent = WaitingAgent(run_id)
    client = await connect(agent, on_busy="enqueue")
    question: Json = {"id": "u1", "role": "user", "content": "one"}
    first = await client.start(ask(run="r1", messages=[question]))
    said = await first.until("TEXT_MESSAGE_CONTENT")
    half = {"id": said["messageId"], "role": "assistant", "content": "r"}
    waiting = [
        await client.start(ask(run=run, messages=[question, *seen, {"id": run, "role": "user", "content": run}]))
        for run, seen in (("r2", [half]), ("r3", []))
    ]
    agent.may_end.set()
    for stream in (first, *waiting):
        assert outcome(await stream.rest()) == "success"
    assert await conversation(client) == ["one", "r1", "r2", "r2", "r3", "r3"]


@pytest.mark.wire
async def test_an_interrupting_run_cancels_the_first(connect: Connect) -> None:
    agent = WaitingAgent(run_id)
    client = await connect(agent, on_busy="interrupt")
    first = await begin_run(client, "r1")
    second = await begin_run(client, "r2")
    assert outcome(await first.rest()) == "cancelled"
    agent.may_end.set()
    assert outcome(await second.rest()) == "success"


async def test_an_interrupt_ends_those_that_wait_too(connect: Connect) -> None:
    agent = WaitingAgent(run_id)
    client = await connect(agent, on_busy="enqueue")
    first = await begin_run(client, "r1")
    second = await client.start(ask(run="r2"))
    third = await begin_run(client, "r3", forwardedProps={"onBusy": "interrupt"})
    assert [outcome(await stream.rest()) for stream in (first, second)] == ["cancelled", "cancelled"]
    agent.may_end.set()
    assert outcome(await third.rest()) == "success"
    assert agent.started_run_ids == ["r1", "r3"]


@pytest.mark.parametrize(
    ("policy", "asked", "result"),
    [("interrupt", "reject", "THREAD_BUSY"), ("reject", "enqueue", "success"), ("enqueue", None, "success")],
)
async def test_a_request_may_choose_for_itself(connect: Connect, policy: str, asked: str | None, result: str) -> None:
    agent = WaitingAgent(run_id)
    client = await connect(agent, on_busy=policy)
    first = await begin_run(client, "r1")
    body = ask(run="r2", forwardedProps={"onBusy": asked})
    if result == "THREAD_BUSY":
        with pytest.raises(Refused) as refused:
            await client.start(body)
        assert refused.value.code == result
        agent.may_end.set()
    else:
        second = await client.start(body)
        agent.may_end.set()
        assert outcome(await second.rest()) == result
    assert outcome(await first.rest()) == "success"


@pytest.mark.parametrize("choice", ["later", "", 1, ["reject"], {"a": 1}])
async def test_an_unknown_choice_is_refused(connect: Connect, choice: object) -> None:
    client = await connect(WaitingAgent(run_id))
    with pytest.raises(Refused) as refused:
        await client.start(ask(forwardedProps={"onBusy": choice}))
    assert refused.value.code == "VALIDATION_ERROR"
    assert "forwardedProps.onBusy" in refused.value.message


async def test_the_queue_of_a_thread_is_bounded(connect: Connect) -> None:
    client = await connect(WaitingAgent(run_id), CapacityLimits(queued_runs=1), on_busy="enqueue")
    await begin_run(client, "r1")
    await client.start(ask(run="r2"))
    with pytest.raises(Refused, match="THREAD_BUSY"):
        await client.start(ask(run="r3"))


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
@pytest.mark.wire
async def test_a_message_whose_run_is_cancelled_while_it_waits_is_kept_in_its_place(connect: Connect) -> None:
    agent = WaitingAgent(run_id)
    client = await connect(agent, on_busy="enqueue")
    first = await begin_run(client, "r1")
    second, third = [await client.start(saying(run)) for run in ("r2", "r3")]
    assert await statuses(client) == {"r1": "running", "r2": "queued", "r3": "queued"}
    await client.command({"command": {"type": "cancel", "threadId": "t1", "runId": "r2"}})
    events = await second.rest()
    assert (types(events), outcome(events)) == (["RUN_STARTED", "RUN_FINISHED"], "cancelled")
    agent.may_end.set()
    assert [outcome(await stream.rest()) for stream in (first, third)] == ["success", "success"]
    await eventually(lambda: not client.service.registry.lives)
    assert agent.started_run_ids == ["r1", "r3"]
    assert sorted(await conversation(client)) == ["hi", "r1", "r3", "said in r2", "said in r3"]
    assert await statuses(client) == {"r1": "finished", "r2": "cancelled", "r3": "finished"}
