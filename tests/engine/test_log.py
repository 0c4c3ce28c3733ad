"""The log of one run: numbered, replayed and followed by any number of readers, in batches of a bounded size."""

import asyncio
from collections.abc import Sequence

import pytest
from ag_ui.core import CustomEvent, EventType

from app.core.deltas import Strings
from app.core.encoder import encode
from app.core.errors import Code
from app.core.stretch import SHORT
from app.core.wire import Envelope
from app.engine.log_budget import LogBudget
from app.engine.event_log import BATCH_BYTES, BATCH_EVENTS, ENVELOPE_BYTES, EventLog
from tests.engine.doubles import WAIT
from tests.requirements import requirement


def make_log(each: int = 10**9, together: int = 10**9) -> EventLog:
    return EventLog("r1", LogBudget(each, together))


def follow(log: EventLog, head: bytes, kind: EventType = EventType.CUSTOM) -> None:
    """Have strings go on with what was appended."""
    log.follow(Strings(len(log), head, kind))


def say(log: EventLog, *texts: str) -> None:
    """It goes on so."""
    assert log.goes_on is not None
    assert all(map(log.goes_on.takes, texts))


def may_go_on(log: EventLog) -> bool:
    return log.goes_on is not None


class Taking:
    """Takes what it is offered."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []
        self.told = 0

    def take(self, data: Sequence[bytes], first: int) -> bool:
        self.taken.append((first, len(data)))
        return True

    def read_on(self) -> None:
        self.told += 1


def append(log: EventLog, *values: str) -> bool:
    """Whether there is room for more behind them."""
    fits = [log.append(EventType.CUSTOM, encode(CustomEvent(name="n", value=value))) for value in values]
    return fits[-1]


async def batches(log: EventLog, after: int = 0) -> list[list[Envelope]]:
    async with asyncio.timeout(WAIT):
        return [batch.envelopes() async for batch in log.read(after)]


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
async def test_readers_share_the_very_bytes() -> None:
    log = make_log()
    append(log, "a", "b")
    log.end()
    [one], [two] = await batches(log), await batches(log)
    assert all(left.data is right.data for left, right in zip(one, two, strict=True))


@requirement("attach.replay")
async def test_a_reader_that_waits_gets_all_that_came_at_once() -> None:
    log = make_log()
    reading = asyncio.create_task(batches(log))
    await asyncio.sleep(0)
    append(log, "a", "b", "c")
    for _ in range(3):
        await asyncio.sleep(0)
    append(log, "d")
    log.end()
    assert [[envelope.seq for envelope in batch] for batch in await reading] == [[1, 2, 3], [4]]


@requirement("attach.replay")
async def test_all_waiting_readers_wake() -> None:
    log = make_log()
    reading = [asyncio.create_task(batches(log, after)) for after in (0, 0, 1)]
    await asyncio.sleep(0)
    append(log, "a", "b")
    log.end()
    assert [sum(map(len, got)) for got in await asyncio.gather(*reading)] == [2, 2, 1]


@requirement("attach.late")
async def test_a_reader_after_the_end_stops_after_the_last() -> None:
    log = make_log()
    append(log, "a")
    log.end()
    assert await batches(log, 1) == []


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


@requirement("limit.size", "limit.all")
def test_a_log_says_when_it_or_all_logs_hold_too_much() -> None:
    budget = LogBudget(180, 300)
    one, other, third = (EventLog(run, budget) for run in ("r1", "r2", "r3"))
    assert append(one, "x" * 30)
    assert append(other, "x" * 30)
    assert not append(third, "")
    assert third.excess().code is Code.RUN_LIMIT_EXCEEDED
    assert "this server holds" in third.excess().message
    third.discard()
    assert not append(other, "x")
    assert other.excess().code is Code.RUN_LIMIT_EXCEEDED
    assert "it produced" in other.excess().message
    other.discard()
    assert budget.used == one.bytes


@requirement("speed.bursts", "limit.size")
def test_what_goes_on_is_reckoned_with_its_burst_and_says_when_it_is_too_much() -> None:
    log, one_by_one, texts = make_log(each=1_500), make_log(), ["x" * 110] * 5
    for each in (log, one_by_one):
        each.append(EventType.CUSTOM, b"{}")
    follow(log, b'{"n":')
    for text in texts:
        one_by_one.append(EventType.CUSTOM, b'{"n":"%b"}' % text.encode())

    def shown_amid(some: Sequence[str]) -> int:
        say(log, *some)
        return log.shown

    assert log.burst(shown_amid, texts) == 1
    assert (log.batch(0, log.shown), log.bytes) == (one_by_one.batch(0, 6), one_by_one.bytes)
    assert may_go_on(log)
    assert not log.is_full
    log.burst(lambda some: say(log, *some), texts)
    assert not may_go_on(log)
    assert (log.shown, log.is_full) == (11, True)
    assert log.excess().code is Code.RUN_LIMIT_EXCEEDED


@requirement("speed.bursts", "limit.size")
@pytest.mark.parametrize("read", [False, True])
async def test_what_goes_on_alone_is_reckoned_by_the_half_kilobyte_and_with_what_comes_else(*, read: bool) -> None:
    log, head, taking = make_log(), b'{"n":', Taking()
    weight = len(head) + len(b'"1"}') + ENVELOPE_BYTES
    log.append(EventType.CUSTOM, b"")
    follow(log, head)
    cursor = log.read(1)
    cursor.offer(taking)
    if read:
        assert await anext(cursor, None) is None
    assert cursor.rests is read
    for count in range(1, 400):
        log.burst(lambda text: say(log, text), "1")
        unreckoned = count - (log.bytes - ENVELOPE_BYTES) // weight
        assert 0 <= unreckoned <= SHORT // len(b'"1"\n')
        assert (log.bytes - ENVELOPE_BYTES) % weight == 0
    assert 0 < log.bytes - ENVELOPE_BYTES < 399 * weight
    log.settle()
    assert log.bytes == 399 * weight + ENVELOPE_BYTES
    log.burst(lambda text: say(log, text), "1")
    log.append(EventType.CUSTOM, b"")
    assert log.bytes == 400 * weight + 2 * ENVELOPE_BYTES
    assert taking.taken == [(number, 1) for number in range(2, 402) if read]
    assert taking.told == read  # of the last one, which is no part of a burst


@requirement("limit.all")
def test_what_was_too_much_is_not_once_there_is_room() -> None:
    budget = LogBudget(1_000, 250)
    log, other = EventLog("r1", budget), EventLog("r2", budget)
    append(other, "x" * 100)
    append(log, "a")
    follow(log, b"")
    say(log, "{")
    log.settle()
    assert log.is_full
    other.discard()
    follow(log, b"")
    say(log, "}")
    log.settle()
    assert not log.is_full


@requirement("speed.bursts", "limit.size")
def test_what_is_settled_is_reckoned_at_once_and_published_unless_amid_a_burst() -> None:
    log, seen = make_log(), list[tuple[int, int]]()
    log.append(EventType.CUSTOM, b"{}")
    follow(log, b"")
    weights = [2 + ENVELOPE_BYTES + count * (len(b'"1"}') + ENVELOPE_BYTES) for count in range(3)]

    def settled(text: str) -> None:
        say(log, text)
        log.settle()
        seen.append((weights.index(log.bytes), log.shown))

    log.burst(settled, "1")
    settled("1")
    log.settle()
    assert seen == [(1, 1), (2, 3)]
    assert log.shown == 3


@requirement("speed.at-once")
@pytest.mark.parametrize("stored", [False, True])
async def test_more_than_is_handed_out_at_once_is_read_by_who_waits(*, stored: bool) -> None:
    log, taking = EventLog("r1", LogBudget(10**9, 10**9), (lambda: None) if stored else None), Taking()
    cursor = log.read()
    cursor.offer(taking)
    assert await anext(cursor, None) is None
    assert cursor.rests
    for texts in (["a", "b"], ["x" * BATCH_BYTES] * 3):
        log.burst(lambda texts: append(log, *texts), texts)
        if stored:
            log.show(len(texts))
        assert taking.told == (len(texts) == 3)
    batch = await anext(cursor)
    assert (taking.taken, batch.first, len(batch.data)) == ([(1, 2)], 3, 1)
    assert not cursor.rests


@requirement("attach.replay")
async def test_who_takes_what_comes_is_told_of_the_end_and_of_nothing_once_it_is_closed() -> None:
    log, taking = make_log(), Taking()
    cursor = log.read()
    cursor.offer(taking)
    assert await anext(cursor, None) is None
    cursor.close()
    append(log, "a")
    assert (taking.taken, taking.told) == ([], 0)
    cursor = log.read(1)
    cursor.offer(taking)
    assert await anext(cursor, None) is None
    log.end()
    assert taking.told == 1
    assert await anext(cursor, None) is None
    assert not cursor.rests


@requirement("attach.replay")
async def test_a_reader_that_is_closed_while_it_waits_has_come_to_its_end() -> None:
    log = make_log()
    cursor = log.read()
    reading = asyncio.ensure_future(anext(cursor, None))
    await asyncio.sleep(0)
    cursor.close()
    async with asyncio.timeout(WAIT):
        assert await reading is None


@requirement("speed.bursts", "attach.replay")
async def test_readers_get_what_goes_on_as_it_was_said_wherever_they_begin() -> None:
    log, said = make_log(), [b"{}"]
    log.append(EventType.CUSTOM, said[0])
    for head, kind in ((b'{"one":', EventType.CUSTOM), (b'{"other":', EventType.RAW)):
        follow(log, head, kind)
        for count in (1, 300, 1):
            texts = [str(number) for number in range(count)]
            log.burst(lambda some: say(log, *some), texts)
            said += [b'%b"%b"}' % (head, text.encode()) for text in texts]
        said.append(b"{}")
        log.append(EventType.RAW, said[-1])
    log.end()
    for after in (0, 1, 2, 150, 302, 303, 304, len(said) - 1):
        got = [each for batch in await batches(log, after) for each in batch]
        assert [each.data for each in got] == said[after:]
        assert [each.seq for each in got] == list(range(after + 1, len(said) + 1))
    types = [each.type for each in next(iter(await batches(log)))]
    assert types == [EventType.CUSTOM] * 303 + [EventType.RAW] * 304


@requirement("speed.bursts", "replica.lost")
def test_what_goes_on_and_was_not_seen_can_be_taken_back() -> None:
    budget = LogBudget(10**9, 10**9)
    log = EventLog("r1", budget, on_append=lambda: None)
    log.append(EventType.CUSTOM, b"{}")
    follow(log, b'{"n":')
    log.burst(lambda some: say(log, *some), ["1", "2", "3"])
    say(log, "4")
    log.show(2)
    log.withdraw()
    log.adopt([Envelope("r1", 3, EventType.RUN_ERROR, b"12")])
    assert log.batch(0, 9).data == [b"{}", b'{"n":"1"}', b"12"]
    assert (len(log), log.bytes) == (3, budget.used)
    assert log.bytes == sum(len(data) + ENVELOPE_BYTES for data in log.batch(0, 9).data)
    assert not may_go_on(log)


@requirement("limit.kept-bytes", "replica.lost")
@pytest.mark.parametrize("ended", [True, False])
async def test_a_log_whose_end_somebody_else_has_written_weighs_what_it_holds(*, ended: bool) -> None:
    budget = LogBudget(10**9, 10**9)
    log = EventLog("r1", budget, on_append=lambda: None)
    append(log, "seen", "not seen", "nor this")
    log.show(1)
    if ended:
        log.end()
    log.withdraw()
    log.adopt([Envelope("r1", 2, EventType.CUSTOM, b"1234567"), Envelope("r1", 3, EventType.RUN_ERROR, b"12")])
    if not ended:
        log.end()
    [batch] = await batches(log)
    weight = sum(len(envelope.data) + ENVELOPE_BYTES for envelope in batch)
    assert [envelope.data for envelope in batch][1:] == [b"1234567", b"12"]
    assert (log.bytes, budget.used, budget.kept) == (weight, weight, weight)
    log.discard()
    assert (budget.used, budget.kept) == (0, 0)


async def test_a_place_is_over_once_all_was_handed_out_and_nothing_more_will_come() -> None:
    log = make_log()
    append(log, *["v"] * (BATCH_EVENTS + 1))
    place = log.read()
    await anext(place)
    log.end()
    assert not place.over
    await anext(place)
    assert place.over


def test_a_place_that_is_closed_is_offered_to_nobody() -> None:
    """It would lead to whoever would take what comes, who leads to it."""
    place = make_log().read()
    place.close()
    place.offer(Taking())
    assert place.waits
