"""A replica is killed while many of its runs are on their way: nothing is run twice, stuck, or lost that was seen."""

import asyncio
import random

import pytest

from tests.replicas.conftest import Start
from tests.requirements import requirement
from tests.sockets.client import Exchange, Json, ask, is_last, post, request, run_input

KILLS, RUNS = 2, 20
EVENTS = 3_000


async def part(port: int, asked: Json, count: int) -> Exchange:
    """A run's stream, read until so many of its events have come."""
    exchange = await Exchange.open(port, post(asked))
    return await exchange.until(lambda _: len(exchange.events) >= count)


async def survived(port: int, asked: Json, seen: list[Json]) -> None:
    """The run has one end, everything that was seen, and leaves its thread to the next."""
    path = f"/runs/{asked['runId']}/events?threadId={asked['threadId']}"
    whole = await (await Exchange.open(port, request("GET", path))).rest()
    assert whole.events[: len(seen)] == seen
    assert [is_last(event) for event in whole.events] == [False] * (len(whole.events) - 1) + [True]
    assert (await ask(port, post(asked))).events == whole.events
    after = (await ask(port, post(run_input("hello", thread=asked["threadId"])))).events
    assert after[-1]["type"] == "RUN_FINISHED"


@requirement("replica.kill")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kill", range(KILLS))
async def test_a_kill_at_any_point_loses_nothing_that_was_seen(replica: Start, kill: int) -> None:
    rng = random.Random(kill)  # noqa: S311 - a seed makes the points the same in every run
    here, there = replica(), replica()
    asked = [run_input(f"stream {EVENTS}") for _ in range(RUNS)]
    points = [rng.choice([1, 2, rng.randrange(EVENTS)]) for _ in asked]
    streams = await asyncio.gather(*(part(here.port, one, count) for one, count in zip(asked, points, strict=True)))
    here.kill()
    for one, stream in zip(asked, streams, strict=True):
        await survived(there.port, one, stream.events)
