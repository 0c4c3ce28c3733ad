"""A run that has ended where runs are stored: it is the store's once nobody reads it, and goes with its thread."""

from collections.abc import Sequence

import pytest

from agui_container.engine.engine import Engine
from agui_container.ports.records import RunKey
from agui_container.ports.store import Delete
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import ErrorCode
from agui_container.replicas.leases import RETENTION_SECONDS
from tests.engine.doubles import asking, caller, envelopes, raises_code
from tests.engine.replicas import Replicas, leases_of
from tests.engine.test_recorder import RUN, open_service, talker, wait_until_stored


async def replicas_after_a_run() -> tuple[Replicas, Engine, Engine, list[Envelope]]:
    """Return two replicas, and a run that has ended on the first and has no reader."""
    replicas = Replicas()
    here, there = await replicas.start(talker), await replicas.start(talker)
    reader = await here.admit(asking(), caller())
    whole = await envelopes(reader)
    await wait_until_stored(here)
    reader.close()
    return replicas, here, there, whole


@pytest.mark.parametrize("asked", [("t1", "r1"), (None, "r1"), ("t1", None)])
async def test_a_run_whose_events_are_forgotten_is_found_and_only_cannot_be_read(
    asked: tuple[str | None, str | None],
) -> None:
    replicas, here, there, _ = await replicas_after_a_run()
    replicas.clock.advance(RETENTION_SECONDS + 1)
    await leases_of(here).purge()
    for service in (here, there):
        [known] = await service.runs.list(caller())
        assert known["status"] == "finished"
        assert await service.runs.find(caller(), *asked) == await service.runs.cancel(caller(), *asked) == known
        with raises_code(ErrorCode.RUN_NOT_FOUND):
            await service.attach(caller(), *asked, 0)


async def test_a_stored_run_without_readers_takes_no_memory() -> None:
    service = await open_service(talker)
    reader = await service.admit(asking(), caller())
    await envelopes(reader)
    await wait_until_stored(service)
    assert service.registry.by_key.get(RUN) is not None
    assert service.readings()["agui.limit.used"]["logBytes"] > 0
    reader.close()
    assert service.registry.by_key.get(RUN) is None
    assert service.readings()["agui.limit.used"]["logBytes"] == 0


# --- deletions during a reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True])
async def test_a_replay_whose_run_is_deleted_ends_with_an_error_and_never_with_another_run(
    monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    replicas, here, there, whole = await replicas_after_a_run()
    page = replicas.store.envelopes

    async def short(run: RunKey, after: int) -> Sequence[Envelope]:
        return (await page(run, after))[:2]

    monkeypatch.setattr(replicas.store, "envelopes", short)
    replay = aiter(await there.attach(caller(), "t1", "r1", 0))
    seen = (await anext(replay)).envelopes()
    assert await replicas.store.edit(RUN.thread, Delete())
    if again:
        replicas.clock.advance(1)
        await envelopes(await here.admit(asking(), caller()))
        await wait_until_stored(here)
    seen += [envelope async for batch in replay for envelope in batch.envelopes()]
    assert seen[:2] == whole[:2]
    assert [envelope.type for envelope in seen[2:]] == ["RUN_ERROR"]
    assert b"RUN_LOST" in seen[-1].data
