"""The log of one run: numbered, replayed and followed by any number of readers, in batches of a bounded size."""

import asyncio

import pytest
from ag_ui.core import CustomEvent, EventType

from app.core.encoder import encode
from app.core.errors import AppError, Code
from app.core.wire import Envelope
from app.engine.log import BATCH_BYTES, ENVELOPE_BYTES, Budget, RunLog
from tests.engine.doubles import WAIT
from tests.requirements import requirement


def make_log(each: int = 10**9, together: int = 10**9) -> RunLog:
    return RunLog("r1", Budget(each, together))


def append(log: RunLog, *values: str) -> None:
    for value in values:
        log.append(EventType.CUSTOM, encode(CustomEvent(name="n", value=value)))


async def batches(log: RunLog, after: int = 0) -> list[list[Envelope]]:
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


async def test_a_long_replay_comes_in_bounded_batches() -> None:
    log = make_log()
    append(log, *("x" * 100_000 for _ in range(10)))
    log.end()
    got = await batches(log)
    assert [envelope.seq for batch in got for envelope in batch] == list(range(1, 11))
    assert max(sum(len(envelope.data) for envelope in batch) for batch in got) < BATCH_BYTES + 100_100


@requirement("limit.size", "limit.all")
def test_a_log_says_when_it_or_all_logs_hold_too_much() -> None:
    budget = Budget(180, 300)
    logs = [RunLog(run, budget) for run in ("r1", "r2")]
    for log in logs:
        append(log, "x" * 30)
        logs[0].check()
    append(logs[1], "x")
    with pytest.raises(AppError) as over:
        logs[1].check()
    assert over.value.code is Code.RUN_LIMIT_EXCEEDED
    with pytest.raises(AppError):
        logs[0].check()
    logs[1].discard()
    logs[0].check()
    assert budget.used == logs[0].bytes
