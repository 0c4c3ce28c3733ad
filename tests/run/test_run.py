"""Runs of one process: agents that resist, fail or send events late, background work, drains, and turns."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from ag_ui.core import (
    CustomEvent,
    RunAgentInput,
    RunFinishedEvent,
    StateSnapshotEvent,
)

from agui_container.conversation.state import SharedState
from agui_container.engine.engine import Engine
from agui_container.engine.limits import CapacityLimits
from agui_container.ports import Item, RunContext
from agui_container.ports.records import RunKey
from agui_container.protocol.encoder import MAX_EVENT_BYTES
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.run.fairness import BURST
from agui_container.settings import Settings
from tests.engine.doubles import (
    FakeClock,
    agent_of,
    asking,
    caller,
    envelopes,
    eventually,
    make_service,
)


def names(log: list[Envelope]) -> list[str]:
    return [envelope.type.value for envelope in log]


async def log_of(agent: object, **limits: int) -> list[Envelope]:
    return await envelopes(await make_service(agent, limits=CapacityLimits(**limits)).admit(asking(), caller()))


async def wait_until_idle(service: Engine) -> None:
    await eventually(lambda: not service.registry.tasks)


async def test_an_error_that_no_event_can_hold_fails_the_run_with_another(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        raise AppError(ErrorCode.MODEL_ERROR, "x" * (MAX_EVENT_BYTES + 1))

    log = await log_of(agent)
    assert names(log)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert b'"code":"AGENT_ERROR"' in log[-1].data
    assert "run could not end in order" in caplog.text


async def test_a_tight_agent_lets_others_run() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(2_000):
            yield CustomEvent(name="n", value=number)

    service = make_service(agent)
    reader = await service.admit(asking(), caller())
    seen = [0]
    while not reader.run.log.has_ended:
        await asyncio.sleep(0)
        seen.append(len(reader.run.log))
    assert max(later - earlier for earlier, later in pairwise(seen)) <= BURST + 2
    assert len(seen) > 2_000 // BURST


async def run_to_end(service: Engine, run: str, thread: str = "t1", owner: str = "everybody") -> None:
    """Execute a run to its end, after its reader has disconnected."""
    reader = await service.admit(asking(thread, run), caller(owner))
    assert (await envelopes(reader))[-1].type == "RUN_FINISHED"
    reader.close()


async def test_a_run_is_stored_before_its_readers_see_its_end_if_the_store_does_no_io() -> None:
    service = make_service(agent_of("hi"))
    await run_to_end(service, "r1")
    record = await service.cluster.store.run(RunKey("everybody", "t1", "r1"))
    kept = await service.cluster.store.thread(RunKey("everybody", "t1", "r1").thread)
    assert record is not None
    assert kept is not None
    assert (record.status, len(kept.messages)) == ("finished", 2)


async def test_background_work_that_fails_is_logged_and_over(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise OSError("no disk")

    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        ctx.background(work())
        yield "hi"

    service = make_service(agent)
    assert (await envelopes(await service.admit(asking(), caller())))[-1].type == "RUN_FINISHED"
    await eventually(lambda: service.health.report()["status"] == "Healthy")
    assert "background work failed" in caplog.text
    assert "no disk" in caplog.text


async def test_reading_out_waits_for_the_last_reader() -> None:
    service = make_service(agent_of("hi"))
    await run_to_end(service, "r0")  # all have left once, and others come
    readers = [await service.admit(asking(), caller()) for _ in range(2)]
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


async def test_a_run_whose_leavings_cannot_be_kept_ends_once_and_frees_its_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unwritable(_: SharedState) -> bytes:
        raise ValueError("too deep")

    service = make_service(agent_of(StateSnapshotEvent(snapshot={"a": 1})))
    monkeypatch.setattr(SharedState, "json", unwritable)
    assert names(await envelopes(await service.admit(asking(), caller())))[-2:] == ["STATE_SNAPSHOT", "RUN_FINISHED"]
    assert names(await envelopes(await service.admit(asking("t1", "r2"), caller())))[-1] == "RUN_FINISHED"
    assert "result of the run cannot be stored" in caplog.text


async def test_an_agent_that_hangs_behind_its_own_end_is_cut_off_when_its_time_is_over() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield RunFinishedEvent(thread_id="t1", run_id="r1")
        await asyncio.Event().wait()

    clock = FakeClock()
    service = make_service(agent, Settings(run_timeout=60), clock=clock)
    assert names(await envelopes(await service.admit(asking(), caller())))[-1] == "RUN_FINISHED"
    assert service.registry.tasks
    clock.advance(60)
    await wait_until_idle(service)
