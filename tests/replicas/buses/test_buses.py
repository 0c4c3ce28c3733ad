"""One contract for every bus: followers read a run live and detect gaps."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import pytest

from agui_container.ports.bus import Bus, BusUnavailable, EventGap
from agui_container.ports.records import RunKey
from agui_container.protocol.envelope import Envelope
from agui_container.replicas.buses import open_bus
from agui_container.replicas.buses.redis import KEPT_ENTRIES, RedisBus
from tests.engine.doubles import WAIT
from tests.ports import free_port
from tests.replicas.buses.memory_bus import MemoryBus
from tests.servers import redis_server_at
from tests.stores.doubles import RUN, envelopes, run

ODD = RunKey("own\0er", "t \u2028", "\U0001f600")


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.services)])
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[Bus]:
    bus = MemoryBus() if request.param == "memory" else open_bus(request.getfixturevalue("redis_url"))
    await bus.open()
    yield bus
    await bus.aclose()


async def follow_until(bus: Bus, until: int, key: RunKey = RUN, after: int = 0) -> list[Envelope]:
    """Return the events that a follower receives up to event ``until``."""
    seen: list[Envelope] = []
    async with asyncio.timeout(WAIT), aclosing(bus.follow(key, after)) as batches:  # type: ignore[type-var]
        async for batch in batches:
            seen += batch
            if seen and seen[-1].seq >= until:
                break
    return seen


async def next_of(bus: Bus, after: int, silence: float = WAIT) -> Sequence[Envelope]:
    async with asyncio.timeout(WAIT), aclosing(bus.follow(RUN, after, silence)) as batches:  # type: ignore[type-var]
        return await anext(batches)


async def test_followers_see_what_comes_and_what_came(bus: Bus) -> None:
    await bus.publish(RUN, envelopes(1, 3))
    waiting = [asyncio.create_task(follow_until(bus, 9, after=after)) for after in (0, 2, 3)]
    for first, last in ((4, 4), (5, 8), (9, 9)):
        await bus.publish(RUN, envelopes(first, last))
    assert await asyncio.gather(*waiting) == [envelopes(1, 9), envelopes(3, 9), envelopes(4, 9)]
    assert await follow_until(bus, 9, after=8) == envelopes(9, 9)


async def test_events_come_as_they_were(bus: Bus) -> None:
    odd = [Envelope(ODD.run_id, 1, envelopes(1, 1)[0].type, bytes(range(256))), *envelopes(2, 2, ODD.run_id, 100_000)]
    await bus.publish(ODD, odd)
    assert await follow_until(bus, 2, ODD) == odd


async def test_events_are_not_published_twice(bus: Bus) -> None:
    await bus.publish(RUN, envelopes(1, 3))
    await bus.publish(RUN, envelopes(1, 3))
    await bus.publish(RUN, envelopes(2, 5))
    await bus.publish(RUN, envelopes(4, 4))
    await bus.publish(RUN, [])
    assert await follow_until(bus, 5) == envelopes(1, 5)


@pytest.mark.parametrize("last", [0, 2], ids=["at the start", "later on"])
async def test_a_gap_is_noticed(bus: Bus, last: int) -> None:
    await bus.publish(RUN, envelopes(1, last))
    await bus.publish(RUN, envelopes(4, 5))
    with pytest.raises(EventGap):
        await follow_until(bus, 5)
    assert list(await next_of(bus, 3)) == envelopes(4, 5)


async def test_silence_is_told(bus: Bus) -> None:
    assert list(await next_of(bus, 0, silence=0.01)) == []
    await bus.publish(RUN, envelopes(1, 1))
    assert list(await next_of(bus, 1, silence=0.01)) == []


@pytest.mark.services
async def test_on_redis_the_last_batches_are_kept(redis_url: str) -> None:
    bus = RedisBus(redis_url)
    for seq in range(1, 3 * KEPT_ENTRIES):
        await bus.publish(RUN, envelopes(seq, seq))
    with pytest.raises(EventGap):
        await next_of(bus, 0)
    last = 3 * KEPT_ENTRIES - 1
    assert await follow_until(bus, last, after=last - KEPT_ENTRIES) == envelopes(last - KEPT_ENTRIES + 1, last)
    await bus.aclose()


async def test_many_runs_are_published_and_followed_at_once_and_by_themselves(bus: Bus) -> None:
    runs = [run(f"r{number}") for number in range(80)]
    following = [asyncio.create_task(follow_until(bus, 2, key)) for key in runs]
    for seq in (1, 2):
        await asyncio.gather(*(bus.publish(key, envelopes(seq, seq, key.run_id)) for key in runs))
    heard = await asyncio.gather(*following)
    assert heard == [envelopes(1, 2, key.run_id) for key in runs]


@pytest.mark.services
async def test_a_bus_that_is_gone_is_said_and_one_that_is_back_is_used(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    port = free_port()
    reason = f"^the bus at 127.0.0.1:{port} failed: ConnectionError: \\w"
    bus = RedisBus(f"redis://127.0.0.1:{port}", timeout=WAIT)
    for round_ in range(2):
        with pytest.raises(BusUnavailable, match=reason):
            await bus.publish(RUN, envelopes(1, 1))
        with pytest.raises(BusUnavailable):
            await next_of(bus, 0)
        with redis_server_at(port, tmp_path_factory.mktemp(f"redis{round_}")):
            await bus.open()
            await bus.publish(RUN, envelopes(1, 2))
            assert await follow_until(bus, 2) == envelopes(1, 2)
    await bus.aclose()


async def test_a_follower_that_leaves_harms_nobody(bus: Bus) -> None:
    leaving = [asyncio.create_task(follow_until(bus, 9)) for _ in range(5)]
    staying = asyncio.create_task(follow_until(bus, 3))
    await bus.publish(RUN, envelopes(1, 1))
    for task in leaving:
        task.cancel()
    await asyncio.wait(leaving)
    await bus.publish(RUN, envelopes(2, 3))
    assert await staying == envelopes(1, 3)


@pytest.mark.parametrize("url", ["", "redis", "redis://", "http://secret@x", "redis://h:secret/0"])
def test_an_unknown_bus_is_refused_without_repeating_its_url(url: str) -> None:
    with pytest.raises(ValueError, match="must be one of memory, redis://") as refused:
        open_bus(url)
    assert "secret" not in str(refused.value)


async def test_a_process_on_its_own_hears_nothing() -> None:
    bus = open_bus("memory")
    await bus.publish(RUN, envelopes(1, 1))
    assert list(await next_of(bus, 0, silence=0)) == []
