"""A log in another encoding: each event once, off the loop where there is much, and counted as memory."""

import asyncio
import threading

from ag_ui.core import CustomEvent, EventType

from app.core.encoder import encode
from app.core.wire import Batch
from app.engine.log_budget import LogBudget
from app.engine.event_log import ENVELOPE_BYTES, EventLog
from app.engine.rendition import LARGE_BYTES
from tests.engine.doubles import WAIT, eventually
from tests.requirements import requirement


class Encoder:
    """Remembers what it was asked for, and where."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.threads: set[int] = set()

    def __call__(self, data: bytes) -> bytes:
        self.asked.append(data)
        self.threads.add(threading.get_ident())
        return b"<%b>" % data


def make_log(budget: LogBudget, *values: str) -> tuple[EventLog, Batch]:
    log = EventLog("r1", budget)
    for value in values:
        log.append(EventType.CUSTOM, encode(CustomEvent(name="n", value=value)))
    return log, log.batch(0, len(log))


@requirement("binary.once")
async def test_all_readers_share_what_was_made_once() -> None:
    log, batch = make_log(LogBudget(10**9, 10**9), "a", "b", "c")
    encoder = Encoder()
    first, second = log.rendition(encoder), log.rendition(Encoder())
    some = Batch("r1", 1, batch.types[:2], batch.data[:2])
    assert await first.of(some) == [b"<%b>" % data for data in some.data]
    assert await second.of(batch) == [b"<%b>" % data for data in batch.data]
    assert encoder.asked == batch.data
    assert encoder.threads == {threading.get_ident()}


@requirement("binary.once")
async def test_much_is_made_in_a_thread_and_still_once() -> None:
    _, batch = made = make_log(LogBudget(10**9, 10**9), "x" * LARGE_BYTES, "b")
    encoder = Encoder()
    rendition = made[0].rendition(encoder)
    one, two = await asyncio.gather(rendition.of(batch), rendition.of(batch))
    assert one == two
    assert encoder.asked == batch.data
    assert threading.get_ident() not in encoder.threads


async def test_who_leaves_while_much_is_made_does_not_wait_for_it() -> None:
    begun, may = threading.Event(), threading.Event()

    def slow(data: bytes) -> bytes:
        begun.set()
        may.wait(WAIT)
        return data

    log, batch = make_log(LogBudget(10**9, 10**9), "x" * LARGE_BYTES)
    leaving = asyncio.create_task(log.rendition(slow).of(batch))
    try:
        await eventually(begun.is_set)
        leaving.cancel()
        await asyncio.wait([leaving], timeout=WAIT / 2)
        assert leaving.cancelled()
    finally:
        may.set()


async def test_what_is_made_counts_for_the_process_and_not_for_the_run() -> None:
    budget = LogBudget(run_bytes=250, all_bytes=10**9)
    log, batch = make_log(budget, "x" * 40)
    produced = log.bytes
    await log.rendition(Encoder()).of(batch)
    made = 2 * produced - ENVELOPE_BYTES + 2
    assert (log.bytes, budget.used) == (produced, made)
    budget.together = budget.used - 1
    assert not log.append(EventType.CUSTOM, b"{}")
    assert "this server holds" in log.excess().message
    log.withdraw()
    log.end()
    assert budget.kept == budget.used
    log.discard()
    assert (budget.used, budget.kept) == (0, 0)
