"""Progress of runs that one replica reports to clients of another one."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from ag_ui.core import RunAgentInput, TokenUsage

from agui_container.engine.log.subscription import REPORT_VALID_SECONDS
from agui_container.engine.persistence import remote_run
from agui_container.engine.persistence.cluster import LEASE_SECONDS
from agui_container.engine.persistence.leases import Leases
from agui_container.engine.service import Service
from agui_container.engine.threads.views import View
from agui_container.ports import Item, RunContext
from agui_container.ports.records import RunProgress
from tests.engine.doubles import asking, caller, envelopes, eventually
from tests.engine.replicas import Replicas, hello
from tests.engine.test_recorder import RUN, ReplicaWithoutRuns, wait_until_stored
from tests.requirements import requirement


async def report_usage(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    ctx.usage.extend([TokenUsage(input_tokens=5, output_tokens=2), TokenUsage(input_tokens=1)])
    yield "hello"
    await asyncio.Event().wait()


async def listed_progress(service: Service) -> View:
    """Return the tokens and readers of the only run, as this replica lists them."""
    [facts] = await service.runs.list(caller())
    return {name: facts.get(name) for name in ("status", "tokens", "readers")}


@requirement("replica.standing", "replica.watched")
async def test_tokens_and_readers_of_a_run_are_seen_on_every_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(remote_run, "SILENCE_SECONDS", 0.001)
    replicas = Replicas()
    here, there = await replicas.start(report_usage), await replicas.start(hello)
    leases = Leases(here.cluster, here.local_runs)
    lease_task = asyncio.create_task(leases.run())
    await here.admit(asking(), caller())
    run = here.registry.by_key[RUN]
    await eventually(lambda: run.log.watermark == 3)
    reading = [asyncio.create_task(envelopes(await there.attach(caller(), "t1", "r1", 0))) for _ in range(2)]
    await eventually(lambda: run.presence.count(replicas.clock.time()) == 3)
    await leases.report()
    assert (
        await listed_progress(there) == await listed_progress(here) == {"status": "running", "tokens": 8, "readers": 3}
    )
    for task in reading:
        task.cancel()
    await asyncio.wait(reading)
    replicas.clock.advance(REPORT_VALID_SECONDS)
    await leases.report()
    assert (
        await listed_progress(there) == await listed_progress(here) == {"status": "running", "tokens": 8, "readers": 1}
    )
    run.cancel()
    await wait_until_stored(here)
    assert await listed_progress(there) == {"status": "cancelled", "tokens": 8, "readers": None}
    lease_task.cancel()
    await asyncio.wait([lease_task])


@requirement("replica.standing")
async def test_a_run_that_stands_as_it_did_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas()
    here = await replicas.start(hello)
    runs, written = replicas.store.runs, list[list[RunProgress]]()
    note = runs.report_progress

    async def report_and_record(replica: str, reports: Sequence[RunProgress]) -> None:
        written.append(list(reports))
        await note(replica, reports)

    monkeypatch.setattr(runs, "report_progress", report_and_record)
    leases = Leases(here.cluster, here.local_runs)
    first = await here.admit(asking(), caller())
    await leases.report()
    await leases.report()
    first.close()
    await leases.report()
    assert written == [[RunProgress(RUN, 1)], [RunProgress(RUN, 0)]]
    await here.drain(0)
    await wait_until_stored(here)


@requirement("replica.standing", "replica.lost")
async def test_the_usage_of_a_lost_run_stays_known() -> None:
    replicas = Replicas()
    here, there = await replicas.start(report_usage), await replicas.start(hello)
    await here.admit(asking(), caller())
    await eventually(lambda: here.registry.by_key[RUN].log.watermark == 3)
    await Leases(here.cluster, here.local_runs).report()
    others = Leases(there.cluster, ReplicaWithoutRuns())
    await others.renew()
    replicas.clock.advance(LEASE_SECONDS)
    await others.renew()
    await others.reap()
    assert await listed_progress(there) == {"status": "error", "tokens": 8, "readers": None}
    await here.drain(0)
    await wait_until_stored(here)
