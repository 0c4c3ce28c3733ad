"""Runs with difficult ends: messages that cannot be stored, and agents that continue after the end."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from ag_ui.core import RunAgentInput, RunFinishedEvent, StateSnapshotEvent

from agui_container.ports import Item
from agui_container.protocol.conversation.state import SharedState
from agui_container.settings import Settings
from tests.engine.doubles import FakeClock, asking, caller, envelopes, make_service
from tests.engine.test_run import names, wait_until_idle
from tests.requirements import requirement


async def test_a_run_whose_leavings_cannot_be_kept_ends_once_and_frees_its_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        yield StateSnapshotEvent(snapshot={"a": 1})

    def unwritable(_: SharedState) -> bytes:
        raise ValueError("too deep")

    service = make_service(agent)
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
