"""What one replica says of its runs to those who ask another one."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from ag_ui.core import RunAgentInput, TokenUsage

from app.engine import elsewhere
from app.engine.archive import LEASE_SECONDS
from app.engine.facts import Facts
from app.engine.leases import Leases
from app.engine.presence import HEARD_SECONDS
from app.engine.service import Service
from app.ports import Item, RunContext
from app.ports.records import Standing
from tests.engine.doubles import asking, caller, envelopes, eventually
from tests.engine.replicas import Replicas, hello
from tests.engine.test_ledger import RUN, Nobody, finished
from tests.requirements import requirement


async def costly(_: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    ctx.usage.extend([TokenUsage(input_tokens=5, output_tokens=2), TokenUsage(input_tokens=1)])
    yield "hello"
    await asyncio.Event().wait()


async def shown(service: Service) -> Facts:
    """The tokens and readers of the only run, as this replica lists it."""
    [facts] = await service.runs.list(caller())
    return {name: facts.get(name) for name in ("status", "tokens", "readers")}


@requirement("replica.standing", "replica.watched")
async def test_tokens_and_readers_of_a_run_are_seen_on_every_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(elsewhere, "SILENCE_SECONDS", 0.001)
    replicas = Replicas()
    here, there = await replicas.start(costly), await replicas.start(hello)
    leases = Leases(here.archive, here.holdings)
    keeping = asyncio.create_task(leases.keep())
    await here.admit(asking(), caller())
    run = here._lifecycle._runs[RUN]
    await eventually(lambda: run.log.watermark == 3)
    reading = [asyncio.create_task(envelopes(await there.attach(caller(), "t1", "r1", 0))) for _ in range(2)]
    await eventually(lambda: run.presence.size(replicas.clock.time()) == 3)
    await leases.tell()
    assert await shown(there) == await shown(here) == {"status": "running", "tokens": 8, "readers": 3}
    for task in reading:
        task.cancel()
    await asyncio.wait(reading)
    replicas.clock.advance(HEARD_SECONDS)
    await leases.tell()
    assert await shown(there) == await shown(here) == {"status": "running", "tokens": 8, "readers": 1}
    run.cancel()
    await finished(here)
    assert await shown(there) == {"status": "cancelled", "tokens": 8, "readers": None}
    keeping.cancel()
    await asyncio.wait([keeping])


@requirement("replica.standing")
async def test_a_run_that_stands_as_it_did_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = Replicas()
    here = await replicas.start(hello)
    runs, written = replicas.store.runs, list[list[Standing]]()
    note = runs.note

    async def noted(replica: str, standings: Sequence[Standing]) -> None:
        written.append(list(standings))
        await note(replica, standings)

    monkeypatch.setattr(runs, "note", noted)
    leases = Leases(here.archive, here.holdings)
    first = await here.admit(asking(), caller())
    await leases.tell()
    await leases.tell()
    first.close()
    await leases.tell()
    assert written == [[Standing(RUN, 1)], [Standing(RUN, 0)]]
    await here.drain(0)
    await finished(here)


@requirement("replica.standing", "replica.lost")
async def test_what_a_lost_run_had_cost_stays_known() -> None:
    replicas = Replicas()
    here, there = await replicas.start(costly), await replicas.start(hello)
    await here.admit(asking(), caller())
    await eventually(lambda: here._lifecycle._runs[RUN].log.watermark == 3)
    await Leases(here.archive, here.holdings).tell()
    others = Leases(there.archive, Nobody())
    await others.renew()
    replicas.clock.advance(LEASE_SECONDS)
    await others.renew()
    await others.bury()
    assert await shown(there) == {"status": "error", "tokens": 8, "readers": None}
    await here.drain(0)
    await finished(here)
