"""A run that has ended where runs are stored: it is the store's once nobody reads it, and goes with its thread."""

import pytest

from app.core.commands import ThreadsDelete
from app.core.errors import AppError, Code
from app.core.wire import Envelope
from app.engine import ledger
from app.engine.service import Service
from app.engine.threads import Threads
from app.ports.store import StoreUnavailable
from tests.engine.doubles import asking, caller, envelopes, eventually
from tests.engine.replicas import Replicas
from tests.engine.test_ledger import RUN, finished, opened, talker
from tests.requirements import requirement


async def read(service: Service) -> list[Envelope]:
    """The run, by a reader that leaves when it has all."""
    reader = await service.attach(caller(), "t1", "r1", 0)
    seen = await envelopes(reader)
    reader.close()
    return seen


@requirement("replica.deleted")
async def test_a_thread_that_is_deleted_on_one_replica_is_gone_from_all() -> None:
    replicas = Replicas()
    here, there = await replicas.start(talker), await replicas.start(talker)
    reader = await here.admit(asking(), caller())
    whole = await envelopes(reader)
    await finished(here)
    reader.close()
    assert await read(here) == await read(there) == whole
    await Threads(there.archive, there.new_id, there.runs).answer(caller(), ThreadsDelete(thread_id="t1"))
    for service in (here, there):
        with pytest.raises(AppError) as told:
            await read(service)
        assert told.value.code is Code.RUN_NOT_FOUND


@requirement("replica.deleted")
async def test_what_nobody_reads_any_more_takes_no_memory() -> None:
    service = await opened(talker)
    reader = await service.admit(asking(), caller())
    await envelopes(reader)
    await finished(service)
    assert service._lifecycle.get(RUN) is not None
    assert service._lifecycle.budget.used > 0
    reader.close()
    assert service._lifecycle.get(RUN) is None
    assert (service._lifecycle.budget.used, service._lifecycle.budget.kept) == (0, 0)


@requirement("replica.deleted")
async def test_a_run_that_nobody_waits_for_goes_when_it_is_stored() -> None:
    service = await opened(talker)
    (await service.admit(asking(), caller())).close()
    await finished(service)
    await eventually(lambda: service._lifecycle.get(RUN) is None)
    assert (await read(service))[-1].type == "RUN_FINISHED"


@requirement("durable.gone")
async def test_what_the_store_did_not_get_can_still_be_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "GIVE_UP_SECONDS", 0.05)

    async def gone(*_: object) -> None:
        raise StoreUnavailable("gone")

    service = await opened(talker)
    monkeypatch.setattr(service.archive.store.runs, "append", gone)
    monkeypatch.setattr(service.archive.store.runs, "finish", gone)
    reader = await service.admit(asking(), caller())
    whole = await envelopes(reader)
    await finished(service)
    reader.close()
    assert await read(service) == whole
