"""The log of one run: numbered, replayed and followed by any number of subscriptions, in batches of a bounded size."""

import asyncio

import pytest
from ag_ui.core import CustomEvent, EventType

from agui_container.protocol.encoder import encode
from agui_container.protocol.envelope import Envelope
from agui_container.protocol.errors import ErrorCode
from agui_container.run.event_log import (
    BATCH_BYTES,
    EventLog,
    Flusher,
    LocalSubscription,
    LogMemory,
)
from tests.engine.doubles import WAIT, log_memory

UNLIMITED = 10**9


def make_log(memory: LogMemory | None = None, flusher: Flusher | None = None, *, is_stored: bool = False) -> EventLog:
    on_flush = (lambda: None) if is_stored else None
    return EventLog("r1", memory or log_memory(UNLIMITED, UNLIMITED), flusher or Flusher(), on_flush)


def append(log: EventLog, *values: str) -> None:
    for value in values:
        log.append(EventType.CUSTOM, encode(CustomEvent(name="n", value=value)))


def subscribe(log: EventLog, after: int = 0) -> LocalSubscription:
    return LocalSubscription(None, log, after)  # type: ignore[arg-type] # nothing here asks for the run


async def batches(log: EventLog, after: int = 0) -> list[list[Envelope]]:
    async with asyncio.timeout(WAIT):
        return [batch.envelopes() async for batch in subscribe(log, after)]


async def test_subscriptions_get_the_same_bytes_whenever_and_wherever_they_begin() -> None:
    log, expected = make_log(), list[bytes]()
    following = asyncio.create_task(batches(log))
    for number in range(300):
        data = b'{"n":%d}' % number
        expected.append(data)
        log.append(EventType.RAW if number % 7 else EventType.CUSTOM, data)
        if number % 3 == 0:
            await asyncio.sleep(0)
    log.end()
    live = [each for batch in await following for each in batch]
    for after in (0, 1, 2, 150, 299):
        replayed = [each for batch in await batches(log, after) for each in batch]
        assert [each.data for each in replayed] == expected[after:]
        assert [each.seq for each in replayed] == list(range(after + 1, 301))
        assert replayed == live[after:]
    assert [each.type for each in live] == [EventType.RAW if n % 7 else EventType.CUSTOM for n in range(300)]


async def test_a_waiting_subscription_gets_all_that_came_in_one_turn_of_the_loop() -> None:
    log = make_log()
    reading = asyncio.create_task(batches(log))
    await asyncio.sleep(0)
    append(log, "a", "b", "c")
    assert log.watermark == 0
    for _ in range(3):
        await asyncio.sleep(0)
    assert log.watermark == 3
    append(log, "d")
    log.end()
    assert [[envelope.seq for envelope in batch] for batch in await reading] == [[1, 2, 3], [4]]


@pytest.mark.parametrize("count", [4, 10])
async def test_a_long_replay_comes_in_bounded_batches(count: int) -> None:
    log = make_log()
    append(log, *("x" * 100_000 for _ in range(count)))
    log.end()
    got = await batches(log)
    assert [envelope.seq for batch in got for envelope in batch] == list(range(1, count + 1))
    assert max(sum(len(envelope.data) for envelope in batch) for batch in got) < BATCH_BYTES + 100_100


async def test_a_log_says_when_it_or_all_logs_hold_too_much() -> None:
    memory, flusher = log_memory(180, 300), Flusher()
    one, other, third = (EventLog(run, memory, flusher) for run in ("r1", "r2", "r3"))
    append(one, "x" * 30)
    append(other, "x" * 30)
    assert one.has_room
    append(third, "")
    assert not third.has_room
    assert "All logs are full" in third.limit_error().message
    third.discard()
    assert other.has_room
    append(other, "x")
    assert not other.has_room
    assert other.limit_error().code is ErrorCode.RUN_LIMIT_EXCEEDED
    assert "it produced" in other.limit_error().message
    other.discard()
    assert memory.used == one.bytes
