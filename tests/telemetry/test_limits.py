"""Metrics of limits: refusals by each limit, and its use."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import pytest
from ag_ui.core import RunAgentInput
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agui_container.agents.as_agent import ThreadAgent
from agui_container.engine.admission.quota import SMALL_BYTES, Limit
from agui_container.engine.policy import CapacityLimits, IdentityLimits
from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError
from agui_container.runtime.daemon_threads import DaemonThreadPool
from tests.contexts import collect_items, run_context, run_input
from tests.engine.doubles import WAIT, asking, caller, forever, make_quota, make_service
from tests.requirements import requirement
from tests.telemetry.conftest import metric_rows


@requirement("trace.limits")
async def test_refusals_and_use_are_measured_by_limit_and_by_no_identity(reader: InMemoryMetricReader) -> None:
    service = make_service(forever, caller_limits=IdentityLimits(runs=1))
    await service.open()
    service.start(asking(), caller())
    for number in range(3):
        with pytest.raises(AppError):
            service.start(asking(f"other {number}"), caller())
    assert metric_rows(reader, "agui.limit.refusals") == [
        ({"agui.limit.name": "runs", "agui.limit.scope": "identity"}, 3),
    ]
    assert {str(row["agui.limit.name"]): used for row, used in metric_rows(reader, "agui.limit.used")} == {
        "runs": 1,
        "requestBytes": 0,
        "streams": 1,
        "sockets": 0,
        "backgroundTasks": 0,
        "logBytes": 0,
        "bytesInFlight": 0,
    }
    await service.drain(0)


# --- limits outside of the engine -------------------------------------------------------------------------------------

Ask = Callable[[str], Awaitable[object]]
"""Asks for one more as this caller."""

LARGE = 2 * SMALL_BYTES


@asynccontextmanager
async def full_budget(*owners: str) -> AsyncIterator[Ask]:
    """Bytes in flight of which each of these callers has all that it may have."""
    quota = make_quota(CapacityLimits(bytes_in_flight=2 * LARGE))
    leases = [quota.of(owner).acquire(Limit.BYTES_IN_FLIGHT, LARGE) for owner in owners]

    async def ask(owner: str) -> object:
        return quota.of(owner).acquire(Limit.BYTES_IN_FLIGHT, LARGE)

    yield ask
    for lease in leases:
        lease.release()


@asynccontextmanager
async def full_threads(*owners: str) -> AsyncIterator[Ask]:
    """An agent in threads of which each of these callers has all that it may have."""
    released = threading.Event()

    def start(_: RunAgentInput, __: RunContext) -> Generator[Item, None, None]:
        released.wait(WAIT)
        yield "a"

    agent = ThreadAgent(start, start, DaemonThreadPool(2, 1))

    async def run(owner: str) -> list[Item]:
        return await collect_items(agent.run(run_input("go"), replace(run_context(), caller=caller(owner))))

    async with asyncio.TaskGroup() as tasks:
        for owner in owners:
            tasks.create_task(run(owner))
        await asyncio.sleep(0)
        yield run
        released.set()


FULL: dict[str, Callable[..., AbstractAsyncContextManager[Ask]]] = {
    "bytesInFlight": full_budget,
    "agentThreads": full_threads,
}
OWNERS = {"identity": ["first"], "process": ["second", "third"]}


@requirement("trace.limits")
@pytest.mark.parametrize("scope", OWNERS)
@pytest.mark.parametrize("name", FULL)
async def test_limits_outside_of_the_engine_are_measured_and_logged_once_in_a_minute(
    reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture, name: str, scope: str
) -> None:
    caplog.set_level(logging.WARNING)
    async with FULL[name](*OWNERS[scope]) as ask:
        for _ in range(3):
            with pytest.raises(AppError):
                await ask("first")
    assert metric_rows(reader, "agui.limit.refusals") == [({"agui.limit.name": name, "agui.limit.scope": scope}, 3)]
    assert caplog.messages == [f"limit reached limit={name} identity=first"]
