"""A second run on a busy thread: it is refused, queued, or replaces the first, by setting or by request."""

import pytest

from agui_container.run.policy import CapacityLimits
from tests.behaviour.client import Client, Refused, begin_run, outcome
from tests.behaviour.test_threads import wait_for_thread
from tests.conftest import Connect
from tests.engine.doubles import Json, ask
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
