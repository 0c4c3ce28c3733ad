"""Replicas on one store: queues across replicas, and lists of runs."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.engine import Engine
from agui_container.engine.log.subscription import REPORT_VALID_SECONDS
from agui_container.engine.persistence import recorder
from agui_container.engine.policy import OnBusy
from agui_container.ports import Item
from agui_container.ports.records import AlreadyExists, Claim, Claimed, Ending, RunKey, ThreadBusy, ThreadKey
from agui_container.protocol.errors import ErrorCode
from agui_container.protocol.wire.envelope import Envelope
from agui_container.settings import Settings
from tests.engine.conversations import store_conversation
from tests.engine.doubles import START, WAIT, asking, caller, envelopes, eventually, raises_code, status, wait_for_event
from tests.engine.replicas import Replicas, hello, types
from tests.engine.test_recorder import wait_until_stored
from tests.requirements import requirement
from tests.waiting_agent import WaitingAgent

ENQUEUE = Settings(on_busy="enqueue")


async def brief(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "done"


async def drain_services(*services: Engine) -> None:
    """Drain the services, and wait until their runs are stored."""
    for service in services:
        await service.drain(0)
        await wait_until_stored(service)


@requirement("replica.enqueue")
async def test_a_run_waits_for_the_run_of_another_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here, there = await replicas.start(holder), await replicas.start(holder, ENQUEUE)
    await here.admit(asking(run="r1"), caller())
    await eventually(lambda: holder.started_run_ids)
    claim, found = replicas.store.runs.claim, list[Claimed | AlreadyExists | ThreadBusy]()

    async def counted(claimed: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        found.append(await claim(claimed))
        return found[-1]

    monkeypatch.setattr(replicas.store.runs, "claim", counted)
    waiting = asyncio.create_task(there.admit(asking(run="r2"), caller()))
    await eventually(lambda: len(found) > 1)
    assert holder.started_run_ids == ["r1"]
    holder.may_end.set()
    async with asyncio.timeout(WAIT):
        reader = await waiting
    assert types(await envelopes(reader))[-1] == "RUN_FINISHED"
    assert holder.started_run_ids == ["r1", "r2"]
    assert [type(each) for each in (found[0], found[-1])] == [ThreadBusy, Claimed]
    await drain_services(here, there)


@requirement("replica.enqueue")
async def test_a_queued_run_keeps_the_answer_of_another_replicas_run() -> None:
    replicas, holder, heard = Replicas(), WaitingAgent(rest="after"), list[str]()

    async def hears(asked: RunAgentInput) -> AsyncIterator[Item]:
        heard.extend(message.id for message in asked.messages)
        yield "done"

    here, there = await replicas.start(holder), await replicas.start(hears, ENQUEUE)
    await here.admit(asking(run="r1"), caller())
    await eventually(lambda: holder.started_run_ids)
    sent = [{"id": key, "role": "user", "content": key} for key in ("u1", "u2")]  # what a client has seen till then
    waiting = asyncio.create_task(there.admit(asking(run="r2", messages=sent), caller()))
    await eventually(lambda: there.registry.by_key)
    run = there.registry.by_key[RunKey("everybody", "t1", "r2")]
    await eventually(lambda: run.recorder.predecessors)
    holder.may_end.set()
    await envelopes(await waiting)
    first, answer, second = heard
    assert (first, second) == ("u1", "u2")
    assert answer not in {"u1", "u2"}
    await drain_services(here, there)


@requirement("busy.interrupt")
async def test_a_run_may_take_the_place_of_one_of_another_replica() -> None:
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here, there = await replicas.start(holder), await replicas.start(brief, Settings(on_busy="interrupt"))
    lease_task = asyncio.create_task(here.leases.run())
    first = await here.admit(asking(run="r1"), caller())
    await eventually(lambda: holder.started_run_ids)
    assert types(await envelopes(await there.admit(asking(run="r2"), caller())))[-1] == "RUN_FINISHED"
    assert status(first) == "cancelled"
    lease_task.cancel()
    await asyncio.wait([lease_task])
    await drain_services(here, there)


@requirement("busy.reject")
async def test_a_run_that_has_ended_here_and_is_not_written_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agui_container.engine.engine.CLOSING_READER_SECONDS", 0)
    replicas, may = Replicas(), asyncio.Event()
    here, finish, claim = await replicas.start(hello), replicas.store.runs.finish, replicas.store.runs.claim
    found = list[Claimed | AlreadyExists | ThreadBusy]()

    async def counted(claimed: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        found.append(await claim(claimed))
        return found[-1]

    async def slow(run: RunKey, replica: str, given: list[Envelope], ending: Ending) -> None:
        await may.wait()
        await finish(run, replica, given, ending)

    monkeypatch.setattr(replicas.store.runs, "finish", slow)
    first = await here.admit(asking(run="r1"), caller())
    await eventually(lambda: len(first.run.log) == 3)
    first.run.cancel()
    monkeypatch.setattr(replicas.store.runs, "claim", counted)
    waiting = asyncio.create_task(here.admit(asking(run="r2"), caller()))
    await eventually(lambda: found)
    assert isinstance(found[0], ThreadBusy)
    may.set()
    (await waiting).run.cancel()
    await wait_until_stored(here)


@requirement("replica.enqueue")
async def test_a_run_does_not_wait_for_ever_for_another_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "GIVE_UP_SECONDS", 0.05)
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here, there = await replicas.start(holder), await replicas.start(holder, ENQUEUE)
    await here.admit(asking(run="r1"), caller())
    await eventually(lambda: holder.started_run_ids)
    with raises_code(ErrorCode.THREAD_BUSY):
        await there.admit(asking(run="r2"), caller())
    assert holder.started_run_ids == ["r1"]
    await drain_services(here, there)


@requirement("replica.enqueue")
async def test_a_run_that_nobody_reads_gives_way_to_a_new_run_of_its_own_replica_only() -> None:
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here, there = await replicas.start(holder), await replicas.start(holder)
    (await here.admit(asking(run="r1"), caller())).close()
    await eventually(lambda: holder.started_run_ids)
    with raises_code(ErrorCode.THREAD_BUSY):
        await there.admit(asking(run="r2"), caller())
    holder.may_end.set()
    assert types(await envelopes(await here.admit(asking(run="r3"), caller())))[-1] == "RUN_FINISHED"
    assert holder.started_run_ids == ["r1", "r3"]
    await drain_services(here, there)


@requirement("replica.watched")
@pytest.mark.parametrize("passed", [REPORT_VALID_SECONDS, -3_600.0], ids=["reports stop", "the clock is set back"])
async def test_a_run_that_is_read_elsewhere_does_not_give_way(passed: float) -> None:
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here = await replicas.start(holder)
    (await here.admit(asking(run="r1"), caller())).close()
    await eventually(lambda: holder.started_run_ids)
    here.readers.remote_reader_seen(RunKey("everybody", "t1", "r1"), "somebody")
    with raises_code(ErrorCode.THREAD_BUSY):
        await here.admit(asking(run="r2"), caller())
    replicas.clock.now += passed
    reader = await here.admit(asking(run="r3"), caller())
    holder.may_end.set()
    assert types(await envelopes(reader))[-1] == "RUN_FINISHED"
    await drain_services(here)


@requirement("replica.watched")
async def test_a_run_that_ends_with_its_last_reader_does_not_wait_for_readers_elsewhere() -> None:
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here, there = await replicas.start(holder, Settings(on_disconnect="cancel")), await replicas.start(holder)
    reader = await here.admit(asking(), caller())
    elsewhere = await there.attach(caller(), "t1", "r1", 0)
    reader.close()
    assert b'"cancelled"' in (await envelopes(elsewhere))[-1].data
    await drain_services(here, there)


@requirement("replica.runs")
async def test_all_live_runs_of_all_replicas_are_listed_behind_whatever_has_ended() -> None:
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here, there = await replicas.start(holder), await replicas.start(holder)
    await here.admit(asking("long", "r1"), caller())
    await eventually(lambda: here.registry.by_key[RunKey("everybody", "long", "r1")].log.watermark == 3)
    for number in range(105):
        await store_conversation(replicas.store, thread=f"t{number}", run=f"ended-{number}", now=START + 1 + number)
    await store_conversation(replicas.store, owner="session:ann", run="anns", now=START + 150)
    replicas.clock.advance(200)
    await there.admit(asking("new", "r2"), caller())
    await eventually(lambda: len(holder.started_run_ids) > 1)
    newest, *ended, oldest = await there.runs.list(caller())
    assert [facts["runId"] for facts in ended] == [f"ended-{number}" for number in range(104, 5, -1)]
    assert {"endedAt", "tokens"} <= ended[0].keys()
    assert oldest == {
        "runId": "r1",
        "threadId": "long",
        "status": "running",
        "startedAt": START,
        "seconds": 200.0,
        "events": 3,
        "tokens": 0,
        "readers": 0,
    }
    own = {name: newest[name] for name in ("runId", "seconds", "tokens", "readers")}
    assert own == {"runId": "r2", "seconds": 0.0, "tokens": 0, "readers": 1}
    await drain_services(here, there)


@requirement("replica.retry")
@pytest.mark.parametrize("on_busy", list(OnBusy))
async def test_a_retry_of_a_run_that_has_ended_leaves_the_threads_run_alone(on_busy: OnBusy) -> None:
    replicas = Replicas()
    first = await replicas.start(brief)
    ran = await envelopes(await first.admit(asking("t1", "r1"), caller()))
    await wait_until_stored(first)
    second = await replicas.start(hello, Settings(on_busy=on_busy))
    going = await second.admit(asking("t1", "r2"), caller())
    assert await envelopes(await second.admit(asking("t1", "r1"), caller())) == ran
    assert status(going) == "running"


@requirement("replica.retry")
async def test_a_retry_of_a_run_without_messages_is_that_run_and_not_the_thread() -> None:
    replicas = Replicas()
    first = await replicas.start(brief)
    speaks_first = asking("t1", "r1").model_copy(update={"messages": []})
    ran = await envelopes(await first.admit(speaks_first, caller()))
    await wait_until_stored(first)
    second = await replicas.start(brief)
    assert await envelopes(await second.admit(speaks_first, caller())) == ran


@requirement("durable.thread")
async def test_the_input_of_a_run_that_is_cancelled_before_it_begins_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas, asked, go_on = Replicas(), asyncio.Event(), asyncio.Event()
    service = await replicas.start(hello)
    claim = replicas.store.runs.claim

    async def slow(asking: Claim) -> Claimed | AlreadyExists | ThreadBusy:
        asked.set()
        await go_on.wait()
        return await claim(asking)

    monkeypatch.setattr(replicas.store.runs, "claim", slow)
    admitting = asyncio.create_task(service.admit(asking("t1", "r1"), caller()))
    await wait_for_event(asked)
    await service.runs.cancel(caller(), "t1", "r1")
    go_on.set()
    await envelopes(await admitting)
    await wait_until_stored(service)
    kept = await replicas.store.threads.changes(ThreadKey("everybody", "t1"))
    assert kept is not None
    assert [message.id for message in kept.messages] == ["u1"]


@requirement("replica.cancel")
async def test_a_command_that_names_a_thread_means_its_active_run_and_not_one_that_waits() -> None:
    replicas, holder = Replicas(), WaitingAgent(rest="after")
    here, there = await replicas.start(holder), await replicas.start(holder, ENQUEUE)
    going = await here.admit(asking(run="r1"), caller())
    await eventually(lambda: holder.started_run_ids)
    waiting = asyncio.create_task(there.admit(asking(run="r2"), caller()))
    await eventually(lambda: there.registry.by_key)
    assert (await there.runs.find(caller(), "t1", None))["runId"] == "r1"
    await there.runs.cancel(caller(), "t1", "r2")
    await envelopes(await waiting)
    assert status(going) == "running"
    await drain_services(here, there)
