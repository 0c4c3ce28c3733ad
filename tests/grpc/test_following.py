"""Clients that wait for the runs of a thread: how often they check, and what they do while the store is away."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from ag_ui.core import RunAgentInput

from agui_container.engine.engine import Engine
from agui_container.ports import Item
from agui_container.ports.store import StoreUnavailable
from agui_container.transports.conversation import following
from tests.engine.doubles import WAIT, asking, caller, envelopes
from tests.engine.test_recorder import open_service, wait_until_stored
from tests.requirements import requirement


async def hello(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "hello"


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine with two runs of a thread, whose store does not list runs at the first attempt."""
    monkeypatch.setattr(following, "POLL_SECONDS", 0)
    service = await open_service(hello)
    for run_id in ("r1", "r2"):
        await envelopes(await service.admit(asking(run=run_id), caller()))
        await wait_until_stored(service)
    runs = service.cluster.store.runs
    list_runs = runs.list

    async def fail_once(*_: Any, **__: Any) -> None:
        monkeypatch.setattr(runs, "list", list_runs)
        raise StoreUnavailable

    monkeypatch.setattr(runs, "list", fail_once)
    return service


@requirement("roz.team", "durable.gone")
async def test_the_runs_of_a_thread_are_iterated_in_order_once_the_store_answers_again(service: Engine) -> None:
    async with asyncio.timeout(WAIT):
        run_ids = following.ThreadRuns(service, caller(), "t1").iterate()
        assert [await anext(run_ids), await anext(run_ids)] == ["r1", "r2"]


@requirement("protocol.crossed", "durable.gone")
async def test_the_next_run_is_found_once_the_store_answers_again(service: Engine) -> None:
    async with asyncio.timeout(WAIT):
        while (found := await following.ThreadRuns(service, caller(), "t1").next_after("r1")) is None:
            await following.pause()
    assert found == "r2"
