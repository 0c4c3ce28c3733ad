"""A process is killed while its runs are on their way: nothing runs twice, is stuck, or is lost that was seen."""

import asyncio
import json
import os
import random
from collections import Counter
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.engine.doubles import Json
from tests.replicas.conftest import Start
from tests.replicas.subscribers import CUT, Piece, Pieces, all_of, as_shown, by_after, by_attach, over_sse, over_ws
from tests.server.sockets.agents import EXECUTIONS
from tests.server.sockets.client import PATIENCE, ask, post, run_input, say

KILLS = int(os.environ.get("AGUI_TEST_KILLS", "1"))
"""Number of replicas that are killed, each at another moment."""

RUNS, LONGEST = 12, 1_000
FINISHED, HELD = 0, 1
"""Two runs whose ends are sure: one is over when the others begin, and one waits for a word that does not come."""


@dataclass
class WatchedRun:
    asked: Json
    is_socket: bool
    seen: list[Piece] = field(default_factory=list)

    @property
    def last_seq(self) -> int:
        return self.seen[-1].seq if self.seen else 0

    def stream(self, port: int) -> Pieces:
        return over_ws(port, self.asked) if self.is_socket else over_sse(port, post(self.asked))

    def on(self, port: int) -> Pieces:
        reading = by_attach if self.is_socket else by_after
        return reading(port, self.asked["threadId"], self.asked["runId"], self.last_seq)


class EventCount:
    """A number of events that all readers together wait for."""

    def __init__(self, events: int) -> None:
        self._left = events
        self._come = asyncio.Event()

    def nearer(self, events: int) -> None:
        self._left -= events
        if self._left <= 0:
            self._come.set()

    async def come(self) -> None:
        await asyncio.wait_for(self._come.wait(), PATIENCE)


async def watch(watched: WatchedRun, port: int, moment: EventCount) -> None:
    with suppress(*CUT):
        async with aclosing(watched.stream(port)) as pieces:
            async for piece in pieces:
                moment.nearer(piece.seq - watched.last_seq)
                watched.seen.append(piece)


async def kill_during_runs(start: Start, executions: Path, dice: random.Random) -> list[WatchedRun]:
    """Start runs of all lengths over both transports, and kill their process at a random moment."""
    here = start(**{EXECUTIONS: str(executions)})
    lengths = [int(LONGEST ** dice.random()) for _ in range(RUNS)]
    asked = ["count 5 brief", "hold", *(f"count {length} long" for length in lengths)]
    runs = [WatchedRun(run_input(text), is_socket=number % 2 == 1) for number, text in enumerate(asked)]
    await watch(runs[FINISHED], here.port, EventCount(1))
    begun, moment = EventCount(1), EventCount(int(sum(lengths) ** dice.random()))
    async with asyncio.TaskGroup() as readers:
        readers.create_task(watch(runs[HELD], here.port, begun))
        await begun.come()
        for watched in runs[HELD + 1 :]:
            readers.create_task(watch(watched, here.port, moment))
        await moment.come()
        here.kill()
    return runs


async def survived(port: int, watched: WatchedRun) -> Json:
    """Check that the read events are stored, that all readers get one end, and that the thread takes another run.

    Returns the last event.
    """
    async with asyncio.TaskGroup() as tasks:
        retry = tasks.create_task(all_of(over_sse(port, post(watched.asked))))
        reading_on = tasks.create_task(continue_reading(watched, port))
    whole, rest = retry.result(), reading_on.result()
    events = [piece.data for piece in whole]
    assert [piece.seq for piece in whole] == list(range(1, len(whole) + 1))
    assert [piece.is_last for piece in whole] == [False] * (len(whole) - 1) + [True]
    assert [piece.data for piece in rest] == as_shown(events, rest)
    assert rest[-1].seq == len(whole)
    assert await all_of(over_sse(port, post(watched.asked))) == whole
    after = await ask(port, post(run_input("hello", thread=watched.asked["threadId"])))
    assert after.events[-1]["type"] == "RUN_FINISHED"
    end: Json = json.loads(events[-1])
    return end


async def continue_reading(watched: WatchedRun, port: int) -> list[Piece]:
    """Return the events that a reader has read, and the rest of the run for the same reader."""
    if not watched.seen:
        return await all_of(watched.stream(port))  # nobody knows whether it has begun
    return watched.seen if watched.seen[-1].is_last else watched.seen + await all_of(watched.on(port))


async def check(port: int, runs: list[WatchedRun], executions: Path) -> None:
    """Check all runs through a process that has survived."""
    await say(port, f"release {runs[HELD].asked['runId']}")  # if it were run again, it would not wait
    async with asyncio.TaskGroup() as tasks:
        surviving = [tasks.create_task(survived(port, watched)) for watched in runs]
    ends = [task.result() for task in surviving]
    assert ends[FINISHED]["type"] == "RUN_FINISHED"
    assert ends[HELD]["code"] == "RUN_LOST"
    assert {end["type"] for end in ends if end.get("code") != "RUN_LOST"} == {"RUN_FINISHED"}
    executed = times_executed(executions)
    assert executed[runs[FINISHED].asked["runId"]] == 1
    assert [run for run, times in executed.items() if times > 1] == []


def times_executed(executions: Path) -> Counter[str]:
    return Counter(executions.read_text().split())


@pytest.mark.parametrize("kill", range(KILLS))
@pytest.mark.services
async def test_a_kill_at_any_moment_loses_nothing_that_was_seen(replica: Start, tmp_path: Path, kill: int) -> None:
    dice = random.Random(kill)  # noqa: S311 - a seed makes the dice the same in every run
    executions = tmp_path / "executions"
    there = replica(**{EXECUTIONS: str(executions)})
    runs = await kill_during_runs(replica, executions, dice)
    await check(there.port, runs, executions)


@pytest.mark.wire
async def test_the_next_process_ends_what_a_killed_one_has_left(process: Start, tmp_path: Path) -> None:
    dice = random.Random(0)  # noqa: S311 - as above
    executions = tmp_path / "executions"
    runs = await kill_during_runs(process, executions, dice)
    await check(process(**{EXECUTIONS: str(executions)}).port, runs, executions)
