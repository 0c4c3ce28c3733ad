"""A log in another encoding: each event once, off the loop where there is much, and counted as memory."""

import asyncio
import threading

from ag_ui.core import CustomEvent, EventType

from agui_container.engine.log.event_log import EventLog, Flusher, LogMemory
from agui_container.engine.log.transcoded_log import RECENT_BYTES, TRANSCODED_BYTES, TranscodedLog
from agui_container.protocol.encoder import encode
from agui_container.protocol.wire.envelope import Batch
from tests.engine.doubles import WAIT, eventually, log_memory
from tests.requirements import requirement


class Encoder:
    """An encoder that records its calls and their threads."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.threads: set[int] = set()

    def __call__(self, data: bytes) -> bytes:
        self.asked.append(data)
        self.threads.add(threading.get_ident())
        return b"<%b>" % data


def make_log(memory: LogMemory, *values: str) -> tuple[EventLog, Batch]:
    log = EventLog("r1", memory, Flusher())
    for value in values:
        log.append(EventType.CUSTOM, encode(CustomEvent(name="n", value=value)))
    log.flush()
    return log, log.batch(0, len(log))


@requirement("binary.once")
async def test_all_readers_share_what_was_made_once() -> None:
    log, batch = make_log(log_memory(), "a", "b", "c")
    encoder = Encoder()
    first, second = log.transcoded(encoder), log.transcoded(Encoder())
    some = Batch("r1", 1, batch.types[:2], batch.data[:2])
    assert await first.encode(some, "first") == [b"<%b>" % data for data in some.data]
    assert await second.encode(batch, "first") == [b"<%b>" % data for data in batch.data]
    assert encoder.asked == batch.data
    assert encoder.threads == {threading.get_ident()}


@requirement("binary.once")
async def test_much_is_made_in_a_thread_and_still_once() -> None:
    _, batch = made = make_log(log_memory(), "x" * TRANSCODED_BYTES, "b")
    encoder = Encoder()
    transcoded = made[0].transcoded(encoder)
    one, two = await asyncio.gather(transcoded.encode(batch, "first"), transcoded.encode(batch, "first"))
    assert one == two
    assert encoder.asked == batch.data
    assert threading.get_ident() not in encoder.threads


async def test_a_reader_that_leaves_does_not_wait_for_a_large_encoding() -> None:
    begun, may = threading.Event(), threading.Event()

    def slow(data: bytes) -> bytes:
        begun.set()
        may.wait(WAIT)
        return data

    log, batch = make_log(log_memory(), "x" * TRANSCODED_BYTES)
    leaving = asyncio.create_task(log.transcoded(slow).encode(batch, "first"))
    try:
        await eventually(begun.is_set)
        leaving.cancel()
        await asyncio.wait([leaving], timeout=WAIT / 2)
        assert leaving.cancelled()
    finally:
        may.set()


async def test_encoded_events_count_for_the_process_and_not_for_the_run() -> None:
    memory = log_memory(run_bytes=250)
    (amount,) = memory.amounts
    log, batch = make_log(memory, "x" * 40)
    produced = log.bytes
    await log.transcoded(Encoder()).encode(batch, "first")
    encoded = sum(len(data) + 2 for data in batch.data)
    assert (log.bytes, amount.used) == (produced, produced + encoded)
    amount.most = amount.used - 1
    assert not log.has_room
    assert "This server has reached" in log.limit_error().message
    log.end()
    log.discard()
    assert amount.used == 0


async def test_only_recent_events_are_kept_and_older_ones_are_encoded_again() -> None:
    kept = 0

    def resize(change: int) -> None:
        nonlocal kept
        kept += change

    encoder = Encoder()
    transcoded = TranscodedLog(encoder, resize)
    data = [b"%06d" % number for number in range(3 * RECENT_BYTES // 8)]
    for first in range(0, len(data), 100):
        some = data[first : first + 100]
        assert await transcoded.encode(Batch("r1", first + 1, [EventType.RAW] * len(some), some), "first") == [
            b"<%b>" % each for each in some
        ]
    assert 0 < kept <= RECENT_BYTES
    assert len(encoder.asked) == len(data)
    await transcoded.encode(Batch("r1", 1, [EventType.RAW], data[:1]), "first")
    await transcoded.encode(Batch("r1", len(data), [EventType.RAW], data[-1:]), "first")
    assert encoder.asked[len(data) :] == data[:1]
