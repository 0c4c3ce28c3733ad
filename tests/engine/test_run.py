"""Runs of agents that resist cancellation, fail in their cleanup or send events late, and the log lines about them."""

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncIterator
from contextvars import ContextVar, copy_context
from itertools import pairwise
from typing import Any

import pytest
from ag_ui.core import (
    CustomEvent,
    RunAgentInput,
    RunFinishedEvent,
    StateSnapshotEvent,
    SubagentStartedEvent,
    TokenUsage,
)

from agui_container.engine.admission.quota import Limit
from agui_container.engine.engine import Engine
from agui_container.engine.policy import CapacityLimits
from agui_container.engine.run.fairness import BURST, FairScheduler
from agui_container.ports import LOG_FIELDS, Item, RunContext
from agui_container.protocol.encoder import MAX_EVENT_BYTES
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocol.wire.envelope import Envelope
from tests.engine.doubles import (
    WAIT,
    agent_of,
    asking,
    caller,
    envelopes,
    eventually,
    make_service,
    status,
    wait_for_event,
)
from tests.protocol.samples import without_validation
from tests.requirements import requirement


def names(log: list[Envelope]) -> list[str]:
    return [envelope.type.value for envelope in log]


async def log_of(agent: object, **limits: int) -> list[Envelope]:
    """Execute a run and return its log."""
    return await envelopes(make_service(agent, limits=CapacityLimits(**limits)).start(asking(), caller()))


async def wait_until_idle(service: Engine) -> None:
    """Wait until no run and no task is left."""
    await eventually(lambda: not service.registry.tasks)


@requirement("cancel.at-once")
async def test_items_that_a_cancelled_agent_yields_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    closed = asyncio.Event()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        try:
            yield CustomEvent(name="n", value=1)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield "I go on"
            yield "and on"
        finally:
            closed.set()

    service = make_service(agent)
    reader = service.start(asking(), caller())
    await eventually(lambda: len(reader.run.log) == 2)
    await service.runs.cancel(caller(), "t1", "r1")
    assert names(await envelopes(reader)) == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
    await wait_for_event(closed)
    await wait_until_idle(service)
    assert "agent continued after the end of its run" in caplog.text


@requirement("fail.after")
@pytest.mark.parametrize("cancelled", [True, False])
async def test_an_agent_that_fails_to_clean_up_changes_nothing(
    caplog: pytest.LogCaptureFixture, *, cancelled: bool
) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        try:
            yield CustomEvent(name="n", value=1)
            if cancelled:
                await asyncio.Event().wait()
        finally:
            raise OSError("cannot clean up")

    service = make_service(agent)
    reader = service.start(asking(), caller())
    await eventually(lambda: len(reader.run.log) >= 2)
    if cancelled:
        await service.runs.cancel(caller(), "t1", "r1")
    await wait_until_idle(service)
    expected = "RUN_FINISHED" if cancelled else "RUN_ERROR"
    assert names(await envelopes(reader)) == ["RUN_STARTED", "CUSTOM", expected]
    assert "cannot clean up" in caplog.text


class PlainIterator:
    """An async iterator that is no generator."""

    def __init__(self, *items: Item) -> None:
        self._items = list(items)

    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    async def __anext__(self) -> Item:
        if not self._items:
            raise StopAsyncIteration
        return self._items.pop(0)


@requirement("agent.object")
@pytest.mark.parametrize("awaited", [True, False])
async def test_an_agent_may_return_any_async_iterator(*, awaited: bool) -> None:
    class Agent:
        def run(self, _: RunAgentInput) -> object:
            stream = PlainIterator(CustomEvent(name="n", value=1))
            if not awaited:
                return stream

            async def later() -> PlainIterator:
                return stream

            return later()

    assert names(await log_of(Agent())) == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]


@requirement("fail.not-an-event")
@pytest.mark.parametrize("stream", [None, [], "text", 7])
async def test_an_agent_that_returns_no_iterator_is_an_error(stream: object) -> None:
    class Agent:
        def run(self, _: RunAgentInput) -> object:
            return stream

    assert names(await log_of(Agent())) == ["RUN_STARTED", "RUN_ERROR"]


@requirement("run.ids")
@pytest.mark.parametrize("field", ["thread_id", "run_id", "caller", "usage", "new_id"])
async def test_an_agent_cannot_change_what_the_run_is(field: str) -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        setattr(ctx, field, None)
        yield "never"

    service = make_service(agent)
    reader = service.start(asking(), caller())
    assert names(await envelopes(reader)) == ["RUN_STARTED", "RUN_ERROR"]
    assert reader.run.key == ("everybody", "t1", "r1")
    assert not service.registry.queues


@requirement("attach.same")
async def test_an_event_is_encoded_before_its_agent_can_change_it() -> None:
    state = {"step": 1}

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        while state["step"] < 3:
            yield StateSnapshotEvent(snapshot=state)
            state["step"] += 1

    log = await log_of(agent)
    assert [envelope.data for envelope in log[1:3]] == [
        b'{"type":"STATE_SNAPSHOT","snapshot":{"step":1}}',
        b'{"type":"STATE_SNAPSHOT","snapshot":{"step":2}}',
    ]


@requirement("run.bad-usage")
@pytest.mark.parametrize("entry", [None, "many", {"inputTokens": 1}, without_validation(TokenUsage, model=["a"])])
async def test_junk_in_the_usage_is_left_out(entry: object) -> None:
    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        usage: list[Any] = ctx.usage
        usage.append(entry)
        yield CustomEvent(name="n", value=1)

    service = make_service(agent)
    log = await envelopes(service.start(asking(), caller()))
    assert names(log) == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
    assert b"usage" not in log[-1].data
    assert [run["tokens"] for run in await service.runs.list(caller())] == [0]


@requirement("run.legal")
@pytest.mark.parametrize(
    "arguments",
    [("NO_SUCH_CODE", "x"), ("MODEL_ERROR", 5), ("MODEL_ERROR", None), ("MODEL_ERROR", "\ud83d"), ("", "")],
)
async def test_an_error_that_is_none_fails_the_run_like_any_mistake(arguments: tuple[Any, Any]) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        raise AppError(*arguments)

    log = await log_of(agent)
    assert names(log)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert b'"code":"AGENT_ERROR"' in log[-1].data


@requirement("run.legal")
async def test_an_error_that_no_event_can_hold_fails_the_run_with_another(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield "hi"
        raise AppError(ErrorCode.MODEL_ERROR, "x" * (MAX_EVENT_BYTES + 1))

    log = await log_of(agent)
    assert names(log)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert b'"code":"AGENT_ERROR"' in log[-1].data
    assert "run could not end in order" in caplog.text


@requirement("fail.subagent")
async def test_an_end_that_cannot_be_sent_fails_what_is_open() -> None:
    assert names(
        await log_of(
            agent_of(
                SubagentStartedEvent(subagent_run_id="sub", name="helper"),
                RunFinishedEvent(thread_id="t1", run_id="r1", result=object()),
            )
        )
    )[1:] == ["SUBAGENT_STARTED", "SUBAGENT_ERROR", "RUN_ERROR"]


@requirement("limit.kept-bytes")
async def test_the_input_of_a_run_is_let_go_when_it_ends() -> None:
    service = make_service(agent_of("hi"))
    run_input = asking()
    kept = weakref.ref(run_input.messages[0])
    await envelopes(service.start(run_input, caller()))
    await wait_until_idle(service)
    del run_input
    gc.collect()
    assert kept() is None


@requirement("limit.kept-bytes")
async def test_the_context_of_a_request_is_released_when_its_run_ends() -> None:
    class Held:
        """Something large that a request brings with it."""

    service, context, held = make_service(agent_of("hi")), copy_context(), Held()
    context.run(ContextVar[Held]("held").set, held)
    reader = context.run(service.start, asking(), caller())
    left = weakref.ref(held)
    del context, held
    await envelopes(reader)
    await wait_until_idle(service)
    await asyncio.sleep(0)  # the last one to be told that a task is done holds its context until then
    gc.collect()
    assert left() is None


@requirement("limit.all")
async def test_when_all_runs_hold_too_much_the_one_that_writes_is_ended() -> None:
    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        if asked.run_id == "silent":
            await asyncio.Event().wait()
        yield CustomEvent(name="n", value="x" * 600)

    service = make_service(agent, limits=CapacityLimits(all_bytes=1_700, kept_runs=1))
    silent = service.start(asking("t0", "silent"), caller())
    ends = []
    for run in ("r1", "r2"):
        reader = service.start(asking("t1", run), caller())
        ends.append((await envelopes(reader))[-1].type.value)
        reader.close()
    assert ends == ["RUN_FINISHED", "RUN_ERROR"]
    assert status(silent) == "running"
    reader = service.start(asking("t1", "r3"), caller())
    assert service.quota.amounts[Limit.LOG_BYTES].used < 1_700
    await service.runs.cancel(caller(), "t0", "silent")
    await wait_until_idle(service)


@requirement("run.legal")
async def test_an_agent_that_cancels_its_own_task_is_blamed_for_the_end() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield CustomEvent(name="n", value=1)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    events = await log_of(agent)
    assert names(events) == ["RUN_STARTED", "CUSTOM", "RUN_ERROR"]
    assert b'"AGENT_ERROR"' in events[-1].data


@requirement("agent.background")
async def test_a_tight_agent_lets_others_run() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(2_000):
            yield CustomEvent(name="n", value=number)

    service = make_service(agent)
    reader = service.start(asking(), caller())
    seen = [0]
    while not reader.run.log.has_ended:
        await asyncio.sleep(0)
        seen.append(len(reader.run.log))
    assert max(later - earlier for earlier, later in pairwise(seen)) <= BURST + 2
    assert len(seen) > 2_000 // BURST


@requirement("fail.request-id")
async def test_log_lines_of_a_run_carry_its_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []

    async def agent(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        seen.append(dict(LOG_FIELDS.get()))
        seen.append(await asyncio.to_thread(lambda: dict(LOG_FIELDS.get())))
        yield "hi"

    service = make_service(agent)
    await envelopes(service.start(asking(), caller(session_id="a")))
    ids = {"requestId": "request-1", "threadId": "t1", "runId": "r1", "sessionId": "sha256-ca978112ca1bbdca"}
    assert seen == [ids] * 2
    assert LOG_FIELDS.get() == {}


@requirement("fail.safe")
async def test_the_log_says_why_an_agent_was_blamed(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(asked: RunAgentInput) -> AsyncIterator[object]:
        yield {"r1": 7, "r2": CustomEvent(name="n", value=object())}[asked.run_id]

    service = make_service(agent)
    with caplog.at_level(logging.ERROR, "agui_container.engine.run.run"):
        for run in ("r1", "r2"):
            await envelopes(service.start(asking(run=run), caller()))
    assert "int is neither an AG-UI event nor a string" in caplog.text
    assert "CustomEvent cannot be encoded" in caplog.text
    assert {record.levelname for record in caplog.records} == {"ERROR"}


@requirement("run.result")
async def test_an_agent_that_ends_its_run_itself_is_not_blamed(caplog: pytest.LogCaptureFixture) -> None:
    async def agent(asked: RunAgentInput) -> AsyncIterator[Item]:
        yield RunFinishedEvent(thread_id=asked.thread_id, run_id=asked.run_id)

    service = make_service(agent)
    await envelopes(service.start(asking(), caller()))
    await wait_until_idle(service)
    assert caplog.records == []


# --- turns ------------------------------------------------------------------------------------------------------------


async def test_one_run_continues_per_turn_of_the_loop_however_many_wait() -> None:
    scheduler, continued = FairScheduler(), list[int]()

    async def one(number: int) -> None:
        await scheduler.yield_turn(number)
        continued.append(number)

    cancelled, *others = (asyncio.create_task(one(number)) for number in range(4))
    await asyncio.sleep(0)
    cancelled.cancel()
    steps = [0]
    async with asyncio.timeout(WAIT):
        while not all(task.done() for task in others):
            await asyncio.sleep(0)
            steps.append(len(continued))
    assert continued == [1, 2, 3]
    assert max(later - earlier for earlier, later in pairwise(steps)) == 1


async def test_tasks_of_one_run_share_its_place_in_the_queue() -> None:
    scheduler, gone_on = FairScheduler(), list[str]()

    async def one(run: str, number: int) -> None:
        await scheduler.yield_turn(run)
        gone_on.append(f"{run}{number}")

    async with asyncio.timeout(WAIT), asyncio.TaskGroup() as tasks:
        for run, number in [("many", 1), ("many", 2), ("many", 3), ("few", 1), ("few", 2)]:
            tasks.create_task(one(run, number))
    assert gone_on == ["many1", "few1", "many2", "few2", "many3"]
