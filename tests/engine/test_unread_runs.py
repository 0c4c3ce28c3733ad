"""A run that has ended where runs are stored: it is the store's once nobody reads it, and goes with its thread."""

import asyncio
from collections.abc import Sequence

import pytest

from agui_container.engine.admission.quota import Limit
from agui_container.engine.engine import Engine
from agui_container.engine.persistence import recorder
from agui_container.engine.persistence.leases import RETENTION_SECONDS
from agui_container.ports.records import RunKey, RunRecord
from agui_container.ports.store import StoreUnavailable
from agui_container.protocol.commands import ThreadsDelete
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Envelope
from tests.engine.doubles import answer_of, asking, caller, envelopes, eventually, forever, raises_code, wait_for_event
from tests.engine.replicas import Replicas, hold_claims
from tests.engine.test_recorder import RUN, open_service, talker, wait_until_stored
from tests.requirements import requirement


async def replicas_after_a_run() -> tuple[Replicas, Engine, Engine, list[Envelope]]:
    """Return two replicas, and a run that has ended on the first and has no reader."""
    replicas = Replicas()
    here, there = await replicas.start(talker), await replicas.start(talker)
    reader = await here.admit(asking(), caller())
    whole = await envelopes(reader)
    await wait_until_stored(here)
    reader.close()
    return replicas, here, there, whole


async def read(service: Engine) -> list[Envelope]:
    """Read the run to its end and disconnect."""
    reader = await service.attach(caller(), "t1", "r1", 0)
    seen = await envelopes(reader)
    reader.close()
    return seen


@requirement("replica.deleted")
async def test_a_thread_that_is_deleted_on_one_replica_is_gone_from_all() -> None:
    _, here, there, whole = await replicas_after_a_run()
    assert await read(here) == await read(there) == whole
    await answer_of(there.threads, ThreadsDelete(thread_id="t1"))
    for service in (here, there):
        with pytest.raises(AppError) as told:
            await read(service)
        assert told.value.code is ErrorCode.RUN_NOT_FOUND


@requirement("durable.forgets")
@pytest.mark.parametrize("asked", [("t1", "r1"), (None, "r1"), ("t1", None)])
async def test_a_run_whose_events_are_forgotten_is_found_and_only_cannot_be_read(
    asked: tuple[str | None, str | None],
) -> None:
    replicas, here, there, _ = await replicas_after_a_run()
    replicas.clock.advance(RETENTION_SECONDS + 1)
    await here.leases.purge()
    for service in (here, there):
        [known] = await service.runs.list(caller())
        assert known["status"] == "finished"
        assert await service.runs.find(caller(), *asked) == await service.runs.cancel(caller(), *asked) == known
        with raises_code(ErrorCode.RUN_NOT_FOUND):
            await service.attach(caller(), *asked, 0)


@requirement("replica.deleted")
async def test_a_stored_run_without_readers_takes_no_memory() -> None:
    service = await open_service(talker)
    reader = await service.admit(asking(), caller())
    await envelopes(reader)
    await wait_until_stored(service)
    assert service.registry.get(RUN) is not None
    assert service.quota.amounts[Limit.LOG_BYTES].used > 0
    reader.close()
    assert service.registry.get(RUN) is None
    assert service.quota.amounts[Limit.LOG_BYTES].used == 0


@requirement("replica.deleted")
async def test_a_run_that_nobody_waits_for_goes_when_it_is_stored() -> None:
    service = await open_service(talker)
    (await service.admit(asking(), caller())).close()
    await wait_until_stored(service)
    await eventually(lambda: service.registry.get(RUN) is None)
    assert (await read(service))[-1].type == "RUN_FINISHED"


@requirement("durable.gone")
async def test_events_that_the_store_did_not_get_can_still_be_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "GIVE_UP_SECONDS", 0.05)

    async def gone(*_: object) -> None:
        raise StoreUnavailable("gone")

    service = await open_service(talker)
    monkeypatch.setattr(service.cluster.store.runs, "append", gone)
    monkeypatch.setattr(service.cluster.store.runs, "finish", gone)
    reader = await service.admit(asking(), caller())
    whole = await envelopes(reader)
    await wait_until_stored(service)
    reader.close()
    assert await read(service) == whole


# --- retries of forgotten runs ----------------------------------------------------------------------------------------


@requirement("replica.retry")
@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_retry_gets_the_run_that_has_ended_whatever_is_cancelled_meanwhile(
    *, elsewhere: bool, turns: int
) -> None:
    _, here, there, whole = await replicas_after_a_run()
    service = there if elsewhere else here
    retry = asyncio.create_task(service.admit(asking(), caller()))
    for _ in range(turns):
        await asyncio.sleep(0)
    assert (await service.runs.cancel(caller(), "t1", "r1"))["status"] in {"finished", "cancelled"}
    reader = await retry
    assert await envelopes(reader) == whole
    reader.close()
    await wait_until_stored(service)
    assert service.registry.get(RUN) is None
    assert await read(service) == whole


@requirement("replica.retry")
@pytest.mark.parametrize("looked_up", [True, False])
async def test_a_retry_that_is_cut_off_here_leaves_nothing(monkeypatch: pytest.MonkeyPatch, *, looked_up: bool) -> None:
    replicas, _, there, whole = await replicas_after_a_run()
    asked, may = hold_claims(monkeypatch, replicas.store)
    reader = there.start(asking(), caller())
    if looked_up:
        await wait_for_event(asked)
    reader.run.cancel()
    may.set()
    assert await envelopes(reader) == whole
    await wait_until_stored(there)
    reader.close()
    assert there.registry.get(RUN) is None
    assert not there.registry.is_forgotten(RUN)
    assert there.quota.amounts[Limit.LOG_BYTES].used == 0


@requirement("replica.retry")
async def test_a_run_that_has_ended_is_shown_as_it_ended_while_its_retry_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replicas, _, there, whole = await replicas_after_a_run()
    asked, may = hold_claims(monkeypatch, replicas.store)
    retry = asyncio.create_task(there.admit(asking(), caller()))
    await wait_for_event(asked)
    assert (await there.runs.find(caller(), "t1", "r1"))["status"] == "finished"
    assert [run["status"] for run in await there.runs.list(caller())] == ["finished"]
    may.set()
    assert await envelopes(await retry) == whole


@requirement("replica.cancel", "replica.retry")
async def test_a_cancel_reaches_a_run_that_has_begun_elsewhere_while_it_was_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replicas = Replicas()
    here, there = await replicas.start(forever), await replicas.start(forever)
    theirs = await there.admit(asking(), caller())
    asked, may = hold_claims(monkeypatch, replicas.store)
    retry, get, looked = here.start(asking(), caller()), replicas.store.runs.get, list[RunKey]()

    async def late(key: RunKey) -> RunRecord | None:
        looked.append(key)
        return await get(key) if len(looked) > 1 else None

    await wait_for_event(asked)
    monkeypatch.setattr(replicas.store.runs, "get", late)
    assert (await here.runs.cancel(caller(), "t1", "r1"))["status"] == "running"
    may.set()
    await there.leases.renew()
    assert b'"cancelled"' in (await envelopes(theirs))[-1].data
    retry.close()
    await wait_until_stored(here)
    await wait_until_stored(there)


@requirement("replica.runs")
async def test_the_latest_run_of_a_thread_is_that_of_any_replica() -> None:
    replicas = Replicas()
    here, there = await replicas.start(talker), await replicas.start(talker)
    reader = await here.admit(asking(run="r1"), caller())
    await envelopes(reader)
    replicas.clock.advance(1)
    await envelopes(await there.admit(asking(run="r2"), caller()))
    await wait_until_stored(there)
    assert here.runs.find_local(caller(), "t1", "r1") is reader.run
    assert (await here.runs.find(caller(), "t1", None))["runId"] == "r2"
    reader.close()
    await wait_until_stored(here)


@requirement("replica.runs")
async def test_a_run_that_is_about_to_begin_is_its_threads_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas, here, _, _ = await replicas_after_a_run()
    asked, may = hold_claims(monkeypatch, replicas.store)
    starting = asyncio.create_task(here.admit(asking(run="r2"), caller()))
    await wait_for_event(asked)
    assert (await here.runs.find(caller(), "t1", None))["runId"] == "r2"
    may.set()
    await envelopes(await starting)
    await wait_until_stored(here)


# --- deletions during a reading ---------------------------------------------------------------------------------------


@requirement("replica.deleted")
@pytest.mark.parametrize("again", [False, True])
async def test_a_replay_whose_run_is_deleted_ends_with_an_error_and_never_with_another_run(
    monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    replicas, here, there, whole = await replicas_after_a_run()
    page = replicas.store.runs.envelopes

    async def short(run: RunKey, after: int) -> Sequence[Envelope]:
        return (await page(run, after))[:2]

    monkeypatch.setattr(replicas.store.runs, "envelopes", short)
    replay = aiter(await there.attach(caller(), "t1", "r1", 0))
    seen = (await anext(replay)).envelopes()
    assert await replicas.store.threads.delete(RUN.thread)
    if again:
        replicas.clock.advance(1)
        await envelopes(await here.admit(asking(), caller()))
        await wait_until_stored(here)
    seen += [envelope async for batch in replay for envelope in batch.envelopes()]
    assert seen[:2] == whole[:2]
    assert [envelope.type for envelope in seen[2:]] == ["RUN_ERROR"]
    assert b"RUN_LOST" in seen[-1].data
