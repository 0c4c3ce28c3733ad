"""Tasks and limits of the process: background work, slow drains, and forgotten runs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from ag_ui.core import RunAgentInput, RunFinishedEvent, StateSnapshotEvent

from agui_container.engine.admission.quota import Limit
from agui_container.engine.engine import Engine
from agui_container.engine.persistence import recorder
from agui_container.engine.policy import CapacityLimits
from agui_container.engine.registry import registry
from agui_container.engine.run.run import Run
from agui_container.ports import Item, RunContext
from agui_container.ports.records import Ending, RunKey, ThreadKey
from agui_container.protocol.commands import ThreadsDelete
from agui_container.protocol.conversation.state import SharedState
from agui_container.protocol.errors import ErrorCode
from agui_container.protocol.wire.envelope import Envelope
from agui_container.settings import Settings
from tests.engine.doubles import (
    FakeClock,
    agent_of,
    answer_of,
    asking,
    caller,
    envelopes,
    eventually,
    forever,
    make_service,
    raises_code,
    wait_for_event,
)
from tests.engine.replicas import Replicas
from tests.engine.test_run import names, wait_until_idle
from tests.executed_lines import lines_of
from tests.requirements import requirement


async def brief(_: RunAgentInput) -> AsyncIterator[Item]:
    """Say one thing."""
    yield "hi"


async def run_to_end(service: Engine, run: str, thread: str = "t1", owner: str = "everybody") -> None:
    """Execute a run to its end, after its reader has disconnected."""
    reader = service.start(asking(thread, run), caller(owner))
    assert (await envelopes(reader))[-1].type == "RUN_FINISHED"
    reader.close()


@requirement("durable.thread")
async def test_a_run_is_stored_before_its_readers_see_its_end_if_the_store_does_no_io() -> None:
    service = make_service(brief)
    await run_to_end(service, "r1")
    record = await service.cluster.store.runs.get(RunKey("everybody", "t1", "r1"))
    kept = await service.cluster.store.threads.changes(RunKey("everybody", "t1", "r1").thread)
    assert record is not None
    assert kept is not None
    assert (record.status, len(kept.messages)) == ("finished", 2)


@requirement("durable.thread")
async def test_a_run_that_cannot_be_written_down_harms_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service(brief)

    async def broken(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(recorder.RunRecorder, "write", broken)
    await run_to_end(service, "r1")
    assert "run recording failed run=r1" in caplog.text
    monkeypatch.undo()
    await run_to_end(service, "r2", "t2")


# --- background work ---


async def do_nothing() -> None:
    """Return at once."""


WORK: dict[str, Callable[[], Awaitable[object]]] = {
    "a coroutine": do_nothing,
    "a task": lambda: asyncio.create_task(do_nothing()),
    "a future": lambda: asyncio.gather(do_nothing(), do_nothing()),
}


@requirement("agent.background")
@pytest.mark.parametrize("make", WORK.values(), ids=WORK)
async def test_anything_that_can_be_awaited_is_background_work(make: Callable[[], Awaitable[object]]) -> None:
    service = make_service(brief)
    service.registry.background(make())
    assert service.health.report()["status"] == "HealthyBusy"
    await eventually(lambda: service.health.report()["status"] == "Healthy")


@requirement("agent.background")
async def test_a_plain_generator_hands_over_background_work_from_its_thread() -> None:
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    def agent(_: RunAgentInput, ctx: RunContext) -> Iterator[Item]:
        ctx.background(work())
        yield "hi"

    service = make_service(agent)
    assert (await envelopes(service.start(asking(), caller())))[-1].type == "RUN_FINISHED"
    await wait_for_event(done)


@requirement("agent.last-state")
async def test_an_ended_run_keeps_its_state_only_while_its_background_work_goes_on() -> None:
    go_on: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.background(go_on)
        yield "hi"

    service = make_service(agent)
    reader = service.start(asking(state={"step": 1}), caller())
    assert (await envelopes(reader))[-1].type == "RUN_FINISHED"
    assert isinstance(reader.run, Run)
    ctx = reader.run.ctx
    assert ctx.state.value == {"step": 1}
    go_on.set_result(None)
    await eventually(lambda: service.health.report()["status"] == "Healthy")
    assert ctx.state.value == {}


@requirement("agent.background")
async def test_background_work_that_fails_is_logged_and_over(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise OSError("no disk")

    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.background(work())
        yield "hi"

    service = make_service(agent)
    assert (await envelopes(service.start(asking(), caller())))[-1].type == "RUN_FINISHED"
    await eventually(lambda: service.health.report()["status"] == "Healthy")
    assert "background work failed" in caplog.text
    assert "no disk" in caplog.text


# --- drain ---


@requirement("drain.ends")
async def test_a_drain_does_not_wait_for_agents_that_resist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "UNWIND_SECONDS", 0)
    give_in = asyncio.Event()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        while not give_in.is_set():
            try:
                await give_in.wait()
            except asyncio.CancelledError:
                continue

    service = make_service(agent)
    reader = service.start(asking(), caller())
    await eventually(lambda: len(reader.run.log) == 3)
    await service.drain(0)
    assert b"SHUTTING_DOWN" in (await envelopes(reader))[-1].data
    assert service.health.report()["status"] == "Healthy"
    give_in.set()
    await eventually(lambda: not service.registry.tasks)


@requirement("drain.ends")
async def test_a_drain_cuts_off_background_work() -> None:
    service = make_service(brief)
    cut_off = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut_off.set()
            raise

    service.registry.background(work())
    await asyncio.sleep(0)
    await service.drain(0)
    assert cut_off.is_set()


@requirement("drain.ends", "durable.first")
async def test_a_drain_waits_for_what_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas()
    service, finish = await replicas.start(forever), replicas.store.runs.finish

    async def slow(run: RunKey, replica: str, given: list[Envelope], ending: Ending) -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        await finish(run, replica, given, ending)

    monkeypatch.setattr(replicas.store.runs, "finish", slow)
    reader = await service.admit(asking(), caller())
    await service.drain(0)
    record = await replicas.store.runs.get(reader.run.key)
    assert record is not None
    assert not record.is_active


@requirement("drain.ends")
async def test_draining_again_is_harmless() -> None:
    service = make_service(forever)
    reader = service.start(asking(), caller())
    await service.drain(0)
    await service.drain(0)
    assert len(await envelopes(reader)) == 2


async def test_reading_out_waits_for_the_last_reader() -> None:
    service = make_service(brief)
    await run_to_end(service, "r0")  # all have left once, and others come
    readers = [service.start(asking(), caller()) for _ in range(2)]
    await service.drain(1)
    waiting = asyncio.create_task(service.wait_for_readers(10))
    await asyncio.sleep(0)
    readers[0].close()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    readers[1].close()
    await waiting
    await service.wait_for_readers(10)


async def test_reading_out_does_not_wait_for_ever() -> None:
    service = make_service(brief)
    service.start(asking(), caller())
    await service.drain(1)
    await service.wait_for_readers(0)


# --- forgotten runs ---


@requirement("retry.forgotten", "limit.kept")
async def test_the_oldest_forgotten_ids_are_no_longer_known() -> None:
    service = make_service(brief, limits=CapacityLimits(kept_runs=0, remembered_ids=4))
    for number in range(10):
        await run_to_end(service, f"r{number}")
    await eventually(lambda: service.registry.is_forgotten(RunKey("everybody", "t1", "r9")))
    known = [service.registry.is_forgotten(RunKey("everybody", "t1", f"r{number}")) for number in range(10)]
    assert known == [False] * 6 + [True] * 4


@requirement("busy.free")
async def test_nothing_is_left_of_threads_that_are_idle() -> None:
    service = make_service(brief, Settings(on_busy="enqueue"), limits=CapacityLimits(kept_runs=0))
    for run in range(20):
        await run_to_end(service, f"r{run}", f"t{run % 3}")
    await eventually(lambda: not service.registry.tasks and not service.registry.recorder_tasks)
    assert (len(service.registry.queues), service.registry.by_key) == (0, {})
    assert service.quota.amounts[Limit.LOG_BYTES].used == 0


@requirement("thread.delete")
@pytest.mark.parametrize("kept_runs", [0, 10])
async def test_runs_of_a_deleted_thread_take_no_memory_and_their_ids_can_be_used_again(kept_runs: int) -> None:
    service = make_service(brief, limits=CapacityLimits(kept_runs=kept_runs))
    for _ in range(2):
        await run_to_end(service, "r1")
        await eventually(lambda: not service.registry.recorder_tasks)
        await answer_of(service.threads, ThreadsDelete(thread_id="t1"))
        assert (service.runs.find_local(caller(), "t1", "r1"), service.quota.amounts[Limit.LOG_BYTES].used) == (None, 0)


@requirement("thread.delete")
async def test_deleting_a_thread_does_not_go_through_the_forgotten_runs_of_others() -> None:
    costs = []
    for count in (2, 200):
        service = make_service(brief, limits=CapacityLimits(kept_runs=0))
        for number in range(count):
            await run_to_end(service, f"r{number}", f"t{number}")
        forgotten = [RunKey("everybody", f"t{number}", f"r{number}") for number in range(count)]
        await eventually(lambda: all(map(service.registry.is_forgotten, forgotten)))  # noqa: B023 - called at once
        costs.append(lines_of(lambda: service.runs.forget_thread(forgotten[1].thread)))  # noqa: B023 - called at once
        assert [service.registry.is_forgotten(key) for key in forgotten[:2]] == [True, False]
    assert costs[0] == costs[1]


@requirement("thread.delete")
async def test_a_run_is_found_by_its_id_alone_until_its_thread_is_deleted() -> None:
    service = make_service(brief)
    for thread in ("t0", "t1"):
        await run_to_end(service, "r", thread)
        await run_to_end(service, "r", thread, "another")
    await eventually(lambda: not service.registry.recorder_tasks)
    newest = service.runs.find_local(caller(), "t1", "r")
    assert newest is not None
    assert service.runs.find_local(caller(), None, "r") is newest
    service.runs.forget_thread(ThreadKey("everybody", "t1"))
    assert service.runs.find_local(caller(), "t1", None) is None
    assert service.runs.find_local(caller(), None, "r") is service.runs.find_local(caller(), "t0", None)
    assert len(list(service.registry.newest_first("another"))) == 2


@requirement("busy.enqueue")
async def test_a_run_in_line_starts_at_once_when_the_one_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "FIRST_PAUSE", 1_000.0)
    service = make_service(brief, Settings(on_busy="enqueue"))
    readers = [service.start(asking(run=f"r{number}"), caller()) for number in range(3)]
    for reader in readers:
        assert (await envelopes(reader))[-1].type == "RUN_FINISHED"


@requirement("limit.open")
async def test_waiting_runs_count_as_open() -> None:
    service = make_service(forever, Settings(on_busy="enqueue"), limits=CapacityLimits(open_runs=2))
    for run in ("r1", "r2"):
        service.start(asking(run=run), caller())
    with raises_code(ErrorCode.RATE_LIMIT_EXCEEDED):
        service.start(asking("t2", "r3"), caller())
    await service.drain(0)


# --- health ---


@requirement("limit.open")
@pytest.mark.parametrize("on_disconnect", ["grace:30", "continue"])
async def test_a_snapshot_without_a_reader_ends_and_is_no_room_for_a_run(on_disconnect: str) -> None:
    service = make_service(forever, Settings(on_disconnect=on_disconnect), limits=CapacityLimits(open_runs=1))
    (await service.admit(asking(), caller())).run.cancel()
    await eventually(lambda: not service.registry.recorder_tasks)
    service.start(asking("t2"), caller())
    snapshot = await service.admit(asking(run="r2", messages=[]), caller())
    snapshot.close()
    assert snapshot.run.log.has_ended
    with raises_code(ErrorCode.RATE_LIMIT_EXCEEDED):
        service.start(asking("t3"), caller())
    await service.drain(0)


# --- ends -------------------------------------------------------------------------------------------------------------


async def test_a_run_whose_leavings_cannot_be_kept_ends_once_and_frees_its_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unwritable(_: SharedState) -> bytes:
        raise ValueError("too deep")

    service = make_service(agent_of(StateSnapshotEvent(snapshot={"a": 1})))
    monkeypatch.setattr(SharedState, "json", unwritable)
    assert names(await envelopes(service.start(asking(), caller())))[-2:] == ["STATE_SNAPSHOT", "RUN_FINISHED"]
    assert names(await envelopes(service.start(asking("t1", "r2"), caller())))[-1] == "RUN_FINISHED"
    assert "result of the run cannot be stored" in caplog.text


@requirement("limit.time")
async def test_an_agent_that_hangs_behind_its_own_end_is_cut_off_when_its_time_is_over() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield RunFinishedEvent(thread_id="t1", run_id="r1")
        await asyncio.Event().wait()

    clock = FakeClock()
    service = make_service(agent, Settings(run_timeout=60), clock=clock)
    assert names(await envelopes(service.start(asking(), caller())))[-1] == "RUN_FINISHED"
    assert service.registry.tasks
    clock.advance(60)
    await wait_until_idle(service)
