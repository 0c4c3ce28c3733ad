"""The interface for transports: readers, the search for runs, and work that is deferred until it is needed."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from ag_ui.core import AgentCapabilities, CustomEvent, RunAgentInput, TokenUsage

from agui_container.agents.as_agent import as_agent
from agui_container.engine.engine import Engine
from agui_container.engine.log.subscription import Subscription
from agui_container.engine.outcome import GoalStatusTracker
from agui_container.engine.persistence.cluster import Cluster
from agui_container.engine.persistence.recorder import RunOrigin
from agui_container.engine.policy import OnBusy, Policy, ThreadCondition
from agui_container.engine.run.run import Run
from agui_container.main import build_app
from agui_container.ports import Caller, Item
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.settings import Settings
from agui_container.stores.memory import MemoryStore
from tests.buses.memory_bus import MemoryBus
from tests.engine.doubles import (
    START,
    WAIT,
    FakeClock,
    asking,
    caller,
    envelopes,
    eventually,
    forever,
    make_service,
    raises_code,
    status,
)
from tests.requirements import requirement


async def brief(_: RunAgentInput) -> AsyncIterator[Item]:
    """Say one thing."""
    yield "hi"


async def slow(_: RunAgentInput) -> AsyncIterator[Item]:
    """Fail after one thing."""
    yield "hi"
    raise AppError(ErrorCode.MODEL_TIMEOUT, "Too slow.")


@requirement("drop.others")
async def test_closing_a_reader_twice_counts_once() -> None:
    service = make_service(forever, Settings(on_disconnect="cancel"))
    first = service.start(asking(), caller())
    await service.attach(caller(), "t1", "r1", 0)
    first.close()
    first.close()
    assert (first.run.presence.local, status(first)) == (1, "running")
    await service.drain(0)


@requirement("drop.returns")
async def test_a_reader_that_is_refused_is_no_reader() -> None:
    service = make_service(forever)
    first = service.start(asking(), caller())
    first.close()
    with pytest.raises(AppError):
        await service.attach(caller(), "t1", "r1", 9)
    assert first.run.presence.local == 0
    assert first.run.presence.grace is not None
    await service.drain(0)


@requirement("busy.reject")
async def test_a_refused_request_ends_no_run_in_its_grace() -> None:
    service = make_service(forever)
    first = service.start(asking(), caller())
    service.start(asking(run="r2", forwardedProps={"onBusy": "enqueue"}), caller())
    first.close()
    assert first.run.presence.grace is not None
    with pytest.raises(AppError, match="active on this thread"):
        service.start(asking(run="r3"), caller())
    assert not first.run.log.has_ended
    await service.drain(0)


@requirement("attach.thread")
async def test_a_run_id_alone_finds_the_newest_run_of_that_name() -> None:
    service = make_service(brief)
    for thread in ("t1", "t2"):
        await envelopes(service.start(asking(thread, "same"), caller()))
    assert (await service.runs.find(caller(), None, "same"))["threadId"] == "t2"
    assert (await service.runs.find(caller(), "t1", "same"))["threadId"] == "t1"


@requirement("http.runs")
async def test_a_run_is_never_shorter_than_no_time_when_the_clock_is_set_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = FakeClock()
    service = make_service(forever, clock=clock)
    reader = service.start(asking(), caller())
    await eventually(lambda: status(reader) == "running")
    clock.now -= 3_600
    [running] = await service.runs.list(caller())
    await service.runs.cancel(caller(), "t1", "r1")
    [ended] = await service.runs.list(caller())
    assert (running["seconds"], ended["seconds"]) == (0.0, 0.0)
    assert [line for line in caplog.messages if line.startswith("run finished") and " ms=0 " in line]
    await service.drain(0)


@requirement("http.runs")
async def test_a_summary_shows_how_a_run_stands() -> None:
    clock = FakeClock()
    service = make_service(forever, Settings(on_busy="enqueue"), clock=clock)
    readers = [service.start(asking(run=run), caller()) for run in ("r1", "r2")]
    await eventually(lambda: status(readers[0]) == "running")
    assert isinstance(readers[0].run, Run)
    readers[0].run.ctx.usage.append(TokenUsage(input_tokens=5, output_tokens=2))
    clock.advance(3)
    await service.runs.cancel(caller(), "t1", "r1")
    clock.advance(1)
    waiting, ended = await service.runs.list(caller())
    assert waiting == {
        "runId": "r2",
        "threadId": "t1",
        "status": "queued",
        "startedAt": START,
        "seconds": 4,
        "events": 0,
        "tokens": 0,
        "readers": 1,
    }
    end = {"status": "cancelled", "events": 2, "endedAt": START + 3, "seconds": 3, "tokens": 7}
    assert ended == {**waiting, "runId": "r1", **end}
    await service.drain(0)


@requirement("http.runs")
@pytest.mark.parametrize("store", ["memory", "sqlite:///{}/store.db"])
async def test_a_summary_says_why_a_run_has_failed(store: str, tmp_path: Path) -> None:
    service = make_service(slow, Settings.model_validate({"store": store.format(tmp_path)}))
    await service.open()
    await envelopes(await service.admit(asking(), caller()))
    (listed,) = await service.runs.list(caller())
    facts = {"requestId": caller().request_id, "retryable": True}
    error = {"code": "MODEL_TIMEOUT", "message": "Too slow.", "metadata": facts}
    assert (listed["status"], listed["error"]) == ("error", error)
    assert (await service.runs.find(caller(), "t1", None))["error"] == listed["error"]
    await service.aclose()


@requirement("retry.joins")
async def test_many_retries_at_once_run_once() -> None:
    started = []

    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        started.append(asked.run_id)
        yield "hi"

    service = make_service(agent)
    readers = [service.start(asking(), caller()) for _ in range(50)]
    logs = await asyncio.gather(*(envelopes(reader) for reader in readers))
    assert started == ["r1"]
    assert all(log == logs[0] for log in logs)


@requirement("run.made-late")
def test_building_the_server_makes_no_id_and_reads_no_clock() -> None:
    class NoClock(FakeClock):
        def time(self) -> float:
            raise NotImplementedError

    def no_id() -> str:
        raise NotImplementedError

    agent = as_agent(brief, "agent")
    cluster = Cluster(MemoryStore(), MemoryBus(), NoClock(), durable=False, new_id=no_id)
    service = Engine(agent, Policy(), NoClock(), cluster, tools={}, capabilities=AgentCapabilities(), new_id=no_id)
    assert build_app(Settings(), service).state.service is service
    assert not service.health.ready


async def test_the_resources_of_the_agents_parts_are_released_when_the_service_closes() -> None:
    closed = []

    async def close() -> None:
        closed.append("a connection")

    cluster = Cluster(MemoryStore(), MemoryBus(), FakeClock(), durable=False, new_id=lambda: "replica-1")
    service = Engine(
        as_agent(brief, "agent"),
        Policy(),
        FakeClock(),
        cluster,
        tools={},
        capabilities=AgentCapabilities(),
        new_id=lambda: "id",
        closers=[close, close],
    )
    await service.open()
    await service.aclose()
    assert closed == ["a connection"] * 2


@requirement("busy.leaving")
async def test_a_request_that_overtakes_the_stop_before_it_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agui_container.engine.engine.CLOSING_READER_SECONDS", 2 * WAIT)
    service = make_service(forever)
    first = service.start(asking(), caller())
    asked = asyncio.create_task(service.admit(asking(run="r2"), caller()))
    await asyncio.sleep(0)
    first.close()
    second = await asyncio.wait_for(asked, WAIT)
    assert (status(first), second.run.key[2]) == ("cancelled", "r2")
    await service.drain(0)


@requirement("busy.leaving")
async def test_a_queued_run_tries_again_only_when_a_reader_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    service, asked = make_service(forever), list[str]()
    start = service.start

    def counted(run_input: RunAgentInput, who: Caller, *_: object, **__: object) -> Subscription:
        asked.append(run_input.run_id)
        return start(run_input, who)

    start(asking("t2", "r0"), caller()).close()
    start(asking(), caller())
    monkeypatch.setattr(service, "start", counted)
    with pytest.raises(AppError):
        await service.admit(asking(run="r2"), caller())
    assert len(asked) == 2
    await service.drain(0)


@requirement("protocol.crossed")
@pytest.mark.parametrize("on_busy", OnBusy)
async def test_a_run_that_continues_another_is_refused_behind_a_newer_one_that_is_open_or_has_ended(
    on_busy: OnBusy,
) -> None:
    service = make_service(forever, Settings(on_busy=on_busy))
    (await service.admit(asking(run="r1"), caller())).run.cancel()
    newer = await service.admit(asking(run="r2"), caller())
    newer.close()
    with pytest.raises(AppError, match="active on this thread"):
        service.start(asking(run="late"), caller(), RunOrigin(condition=ThreadCondition("r1")))
    for was_open in (True, False):
        with pytest.raises(AppError) as refused:
            await service.admit(asking(run="late"), caller(), condition=ThreadCondition("r1"))
        assert newer.run.log.has_ended is not was_open
        assert refused.value.code is ErrorCode.THREAD_BUSY
        assert "late" not in service.registry.active_run_ids(9)
        newer.run.cancel()
    await service.admit(asking(run="r3"), caller(), condition=ThreadCondition("r2"))
    await service.drain(0)


@requirement("busy.leaving")
async def test_a_thread_that_stays_busy_refuses_soon() -> None:
    service = make_service(forever)
    service.start(asking(), caller())
    with raises_code(ErrorCode.THREAD_BUSY):
        await service.admit(asking(run="r2"), caller())
    await service.drain(0)


@requirement("busy.leaving")
async def test_a_run_on_a_busy_thread_is_refused_before_its_messages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service(forever)
    service.start(asking(), caller())
    monkeypatch.setattr("agui_container.engine.engine.EventPipeline", None)  # it reads them, and would raise
    with raises_code(ErrorCode.THREAD_BUSY):
        service.start(asking(run="r2"), caller())
    await service.drain(0)


# --- goals of a run ---------------------------------------------------------------------------------------------------


@requirement("goal.foreign")
@pytest.mark.parametrize(
    "value", [None, 1, "goals", [], {}, {"goals": None}, {"goals": ["a"]}, {"goals": [{"type": {}}]}]
)
@pytest.mark.parametrize("name", ["goals.declared", "goal.achieved", "goal.failed"])
def test_events_that_are_not_goals_are_ignored(name: str, value: object) -> None:
    watch = GoalStatusTracker()
    watch.feed(CustomEvent(name=name, value=value))
    watch.feed(CustomEvent(name=name, value={"type": value}))
    assert watch.has_failed is (name == "goal.failed" and isinstance(value, str))


def test_a_goal_that_is_left_pending_has_failed() -> None:
    watch = GoalStatusTracker()
    watch.feed(CustomEvent(name="goals.declared", value={"goals": [{"type": "note", "status": "pending"}]}))
    assert watch.has_failed
    watch.feed(CustomEvent(name="goal.achieved", value={"type": "note"}))
    assert not watch.has_failed
