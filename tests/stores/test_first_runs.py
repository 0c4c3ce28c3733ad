"""A run that must be the first one of its thread, in every store: of two that begin at once, one gets the thread."""

import asyncio
from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput, TextMessageChunkEvent

from agui_container.engine.engine import Engine
from agui_container.ports import Item
from agui_container.ports.records import ThreadKey
from agui_container.ports.store import Store
from agui_container.protocol.errors import AppError
from agui_container.run.cluster import Cluster
from agui_container.run.policy import OnBusy, ThreadCondition
from agui_container.settings import Settings
from tests.engine.doubles import FakeClock, Json, asking, caller, envelopes, eventually, make_service
from tests.replicas.buses.memory_bus import MemoryBus
from tests.stores.doubles import get_delta

THREAD = ThreadKey("everybody", "t1")
EMPTY = ThreadCondition(is_empty=True)


async def answer(asked: RunAgentInput) -> AsyncIterator[Item]:
    yield TextMessageChunkEvent(message_id=f"answer-{asked.run_id}", delta="Yes.")


def open_replica(store: Store, name: str) -> Engine:
    clock = FakeClock()
    cluster = Cluster(store, MemoryBus(), clock, new_id=lambda: name)
    return make_service(answer, Settings(on_busy=OnBusy.ENQUEUE), clock=clock, cluster=cluster)


async def run(service: Engine, name: str) -> str:
    history: list[Json] = [{"id": f"{name}-{at}", "role": "user", "content": f"{name} {at}"} for at in range(2)]
    try:
        read = await envelopes(await service.admit(asking(run=name, messages=history), caller(), condition=EMPTY))
    except AppError as error:
        return error.code
    await eventually(lambda: not service.registry.lives and not service.registry.tasks)
    return read[-1].type


async def message_ids(store: Store) -> list[str]:
    return [message.id for message in (await get_delta(store, THREAD)).messages]


async def test_of_two_runs_that_must_each_begin_a_thread_one_begins_it_and_its_messages_stay(store: Store) -> None:
    services = {name: open_replica(store, name) for name in ("a", "b")}
    ends = dict(zip(services, await asyncio.gather(*(run(it, name) for name, it in services.items())), strict=True))
    (winner,) = [name for name, end in ends.items() if end == "RUN_FINISHED"]
    assert set(ends.values()) - {"RUN_FINISHED"} <= {"THREAD_BUSY", "VALIDATION_ERROR"}
    expected = [f"{winner}-0", f"{winner}-1", f"answer-{winner}"]
    assert await message_ids(store) == expected
    assert await run(services["a"], "later") == "VALIDATION_ERROR", "the thread is not even claimed"
    assert await message_ids(store) == expected
