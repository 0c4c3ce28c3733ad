"""The log of one run: numbered, replayed and followed by any number of subscriptions, in batches of a bounded size."""

import asyncio

import pytest
from ag_ui.core import CustomEvent, EventType

from agui_container.protocol.encoder import encode
from agui_container.protocol.envelope import Batch, Envelope
from agui_container.protocol.errors import ErrorCode
from agui_container.run.event_log import (
    BATCH_BYTES,
    ENVELOPE_BYTES,
    EventLog,
    Flusher,
    LocalSubscription,
    LogMemory,
)
from tests.engine.doubles import WAIT, eventually, log_memory

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


class LimitedWriter:
    """A writer that accepts batches as long as it has room."""

    def __init__(self, *, has_room: bool = True) -> None:
        self.has_room = has_room
        self.written: list[tuple[int, int]] = []

    def push(self, batch: Batch) -> bool:
        if self.has_room:
            self.written.append((batch.first, len(batch.data)))
        return self.has_room


async def next_batch(subscription: LocalSubscription) -> Batch | None:
    return await anext(subscription, None)


async def wait_for_batch(
    log: EventLog, writer: LimitedWriter, after: int = 0
) -> tuple[LocalSubscription, asyncio.Task[Batch | None]]:
    """Return a subscription that pushes, and the task that waits for its next batch."""
    subscription = subscribe(log)
    subscription.push_to(writer.push)
    following = asyncio.create_task(next_batch(subscription))
    await asyncio.sleep(0)
    return subscription, following


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


async def test_a_waiting_subscription_pushes_what_is_ready_and_hands_it_out_no_more() -> None:
    log, writer = make_log(), LimitedWriter()
    _, following = await wait_for_batch(log, writer)
    append(log, "a", "b")
    await eventually(lambda: writer.written == [(1, 2)])
    append(log, "c")
    await eventually(lambda: writer.written == [(1, 2), (3, 1)])
    assert not following.done()
    log.end()
    assert await following is None


async def test_unpublished_events_can_be_replaced_by_those_of_another_replica() -> None:
    memory = log_memory()
    log = make_log(memory, is_stored=True)
    for number in range(3):
        log.append(EventType.CUSTOM, b'{"n":%d}' % number)
    log.flush()
    log.append(EventType.CUSTOM, b'{"n":3}')
    log.advance(2)
    log.replace_unread([Envelope("r1", 3, EventType.RUN_ERROR, b"12")])
    assert log.watermark == 3
    assert log.batch(0, 9).data == [b'{"n":0}', b'{"n":1}', b"12"]
    assert (len(log), log.bytes) == (3, memory.used)
    assert log.bytes == sum(len(data) + ENVELOPE_BYTES for data in log.batch(0, 9).data)


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
