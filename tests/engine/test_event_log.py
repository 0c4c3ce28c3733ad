"""The log of one run: numbered, replayed and followed by any number of subscriptions, in batches of a bounded size."""

import asyncio

import pytest
from ag_ui.core import CustomEvent, EventType

from agui_container.engine.admission.quota import Limit
from agui_container.engine.log.event_log import BATCH_BYTES, BATCH_EVENTS, ENVELOPE_BYTES, EventLog, Flusher, LogMemory
from agui_container.engine.log.subscription import LocalSubscription
from agui_container.protocol.encoder import encode
from agui_container.protocol.errors import ErrorCode
from agui_container.protocol.wire.envelope import Batch, Envelope
from tests.engine.doubles import WAIT, eventually, log_memory
from tests.requirements import requirement

UNLIMITED = 10**9


def make_log(memory: LogMemory | None = None, flusher: Flusher | None = None, *, is_stored: bool = False) -> EventLog:
    on_flush = (lambda: None) if is_stored else None
    return EventLog("r1", memory or log_memory(UNLIMITED, UNLIMITED), flusher or Flusher(), on_flush)


def used_of(memory: LogMemory) -> int:
    return memory.quota.amounts(Limit.LOG_BYTES)[0].used


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


@requirement("attach.numbers")
async def test_envelopes_are_numbered_from_one() -> None:
    log = make_log()
    append(log, "a", "b")
    log.end()
    [batch] = await batches(log)
    assert [(envelope.run_id, envelope.seq) for envelope in batch] == [("r1", 1), ("r1", 2)]
    assert batch[0] == Envelope("r1", 1, EventType.CUSTOM, b'{"type":"CUSTOM","name":"n","value":"a"}')
    assert (len(log), log.bytes) == (2, sum(len(envelope.data) + ENVELOPE_BYTES for envelope in batch))


@requirement("attach.same")
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


@requirement("attach.replay", "speed.flush")
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


async def test_a_replay_of_many_short_events_comes_in_batches_of_bounded_number() -> None:
    log = make_log()
    append(log, *("a" for _ in range(2 * BATCH_EVENTS + 1)))
    log.end()
    assert [len(batch) for batch in await batches(log)] == [BATCH_EVENTS, BATCH_EVENTS, 1]


# --- pushing ---


@requirement("speed.push")
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


@requirement("speed.push")
async def test_events_that_a_writer_refuses_are_yielded_by_the_iteration() -> None:
    log, writer = make_log(), LimitedWriter(has_room=False)
    _, following = await wait_for_batch(log, writer)
    append(log, "a")
    batch = await following
    assert batch is not None
    assert (batch.first, len(batch.data)) == (1, 1)


@requirement("speed.push")
async def test_nothing_is_pushed_while_the_iteration_does_not_wait() -> None:
    log, writer = make_log(), LimitedWriter(has_room=False)
    subscription, following = await wait_for_batch(log, writer)
    append(log, "a")
    await following
    writer.has_room = True
    append(log, "b")
    await eventually(lambda: log.watermark == 2)
    assert writer.written == []
    batch = await anext(subscription)
    assert (batch.first, len(batch.data)) == (2, 1)


@requirement("speed.push")
@pytest.mark.parametrize("is_stored", [False, True])
async def test_of_more_than_one_batch_the_rest_is_left_to_the_iteration(*, is_stored: bool) -> None:
    log, writer = make_log(is_stored=is_stored), LimitedWriter()
    _, following = await wait_for_batch(log, writer)
    append(log, *["x" * BATCH_BYTES] * 2)
    if is_stored:
        log.flush()
        log.advance(2)
    batch = await following
    assert batch is not None
    assert (writer.written, batch.first, len(batch.data)) == ([(1, 1)], 2, 1)


@requirement("attach.replay")
async def test_the_last_events_of_a_run_are_left_to_the_iteration() -> None:
    log, writer = make_log(), LimitedWriter()
    subscription, following = await wait_for_batch(log, writer)
    append(log, "a")
    log.end()
    batch = await following
    assert batch is not None
    assert (writer.written, len(batch.data), subscription.is_exhausted) == ([], 1, True)


@requirement("http.keepalive")
async def test_an_interrupted_subscription_hands_out_an_empty_batch_and_continues() -> None:
    log = make_log()
    subscription, following = await wait_for_batch(log, LimitedWriter())
    subscription.interrupt()
    batch = await following
    assert batch is not None
    assert (batch.first, batch.data) == (1, [])
    subscription.interrupt()  # it does not wait
    append(log, "a")
    await eventually(lambda: log.watermark == 1)
    assert len((await anext(subscription)).data) == 1


@requirement("attach.replay")
async def test_a_subscription_that_is_closed_while_it_waits_ends_and_pushes_nothing_more() -> None:
    log, writer = make_log(), LimitedWriter()
    subscription, following = await wait_for_batch(log, writer)
    subscription.close()
    subscription.close()
    append(log, "a")
    async with asyncio.timeout(WAIT):
        assert await following is None
    await eventually(lambda: log.watermark == 1)
    assert writer.written == []


async def test_a_subscription_is_exhausted_once_all_was_handed_out_and_nothing_more_will_come() -> None:
    log = make_log()
    append(log, *["v"] * (BATCH_EVENTS + 1))
    subscription = subscribe(log)
    await eventually(lambda: log.watermark)
    await anext(subscription)
    log.end()
    assert not subscription.is_exhausted
    await anext(subscription)
    assert subscription.is_exhausted


# --- the flusher ---


@requirement("speed.flush")
def test_a_flusher_that_outlives_an_event_loop_flushes_in_the_next_one() -> None:
    flusher = Flusher()
    first, log = make_log(flusher=flusher), make_log(flusher=flusher)

    async def write(*, is_flushed: bool) -> None:
        append(log, "a")
        if is_flushed:
            await eventually(lambda: log.watermark == len(log))

    async def leave_unflushed() -> None:
        append(first, "a")

    asyncio.run(leave_unflushed())
    asyncio.run(write(is_flushed=True))
    assert first.watermark == 1


@requirement("speed.flush")
async def test_a_log_that_fails_to_flush_delays_no_other(caplog: pytest.LogCaptureFixture) -> None:
    flusher = Flusher()

    def fail() -> None:
        raise RuntimeError("lost")

    failing = EventLog("r1", log_memory(UNLIMITED, UNLIMITED), flusher, fail)
    other = EventLog("r2", log_memory(UNLIMITED, UNLIMITED), flusher)
    append(failing, "a")
    append(other, "a")
    await eventually(lambda: other.watermark == 1)
    assert "flush failed run=r1" in caplog.text


# --- storing ---


@requirement("replica.lost")
async def test_subscriptions_see_only_what_is_stored_until_all_is_released() -> None:
    log = make_log(is_stored=True)
    append(log, "a", "b", "c")
    log.flush()
    assert (log.watermark, len(log.unpersisted().data)) == (0, 3)
    log.advance(2)
    assert (log.watermark, log.unpersisted().first) == (2, 3)
    log.release_all()
    await eventually(lambda: log.watermark == 3)


@requirement("replica.lost")
async def test_unpublished_events_can_be_replaced_by_those_of_another_replica() -> None:
    memory = log_memory()
    log = make_log(memory, is_stored=True)
    for number in range(3):
        log.append(EventType.CUSTOM, b'{"n":%d}' % number)
    log.flush()
    log.append(EventType.CUSTOM, b'{"n":3}')
    log.advance(2)
    log.rollback_unpublished()
    log.append_foreign([Envelope("r1", 3, EventType.RUN_ERROR, b"12")])
    assert log.watermark == 3
    assert log.batch(0, 9).data == [b'{"n":0}', b'{"n":1}', b"12"]
    assert (len(log), log.bytes) == (3, used_of(memory))
    assert log.bytes == sum(len(data) + ENVELOPE_BYTES for data in log.batch(0, 9).data)


@requirement("limit.kept-bytes", "replica.lost")
@pytest.mark.parametrize("has_ended", [True, False])
async def test_a_log_whose_end_another_replica_wrote_counts_what_it_holds(*, has_ended: bool) -> None:
    memory = log_memory()
    log = make_log(memory, is_stored=True)
    append(log, "seen", "not seen", "nor this")
    log.flush()
    log.advance(1)
    if has_ended:
        log.end()
    log.rollback_unpublished()
    log.append_foreign([Envelope("r1", 2, EventType.CUSTOM, b"1234567"), Envelope("r1", 3, EventType.RUN_ERROR, b"12")])
    if not has_ended:
        log.end()
    batch = [each for batch in await batches(log) for each in batch]
    size = sum(len(envelope.data) + ENVELOPE_BYTES for envelope in batch)
    assert [envelope.data for envelope in batch][1:] == [b"1234567", b"12"]
    assert (log.bytes, used_of(memory)) == (size, size)
    log.discard()
    assert used_of(memory) == 0


# --- limits ---


@requirement("limit.size", "limit.all")
async def test_a_log_says_when_it_or_all_logs_hold_too_much() -> None:
    memory, flusher = log_memory(180, 300), Flusher()
    one, other, third = (EventLog(run, memory, flusher) for run in ("r1", "r2", "r3"))
    append(one, "x" * 30)
    append(other, "x" * 30)
    assert one.has_room
    append(third, "")
    assert not third.has_room
    assert "This server has reached" in third.limit_error().message
    third.discard()
    assert other.has_room
    append(other, "x")
    assert not other.has_room
    assert other.limit_error().code is ErrorCode.RUN_LIMIT_EXCEEDED
    assert "it produced" in other.limit_error().message
    other.discard()
    assert used_of(memory) == one.bytes
