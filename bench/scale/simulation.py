"""Simulation of the way from a token to the database: the window of a run, and the batches of a replica.

A token of a stream waits for others of its run (``WINDOW_SECONDS``). Then the run asks for an append. A replica writes
one batch at a time, with what all of its runs have asked for meanwhile. So the number of transactions depends on the
load in a way that no formula gives: many at a low load, few and large ones at a high load.

Rule: the constants are those of the code. Only the duration of a transaction is measured.
"""

import heapq
import random
from collections import defaultdict
from dataclasses import dataclass

from agui_container.engine.persistence.recorder import WINDOW_SECONDS
from agui_container.stores.sql.envelopes import MAX_RUNS

SETTLING_SECONDS = 1.0
SEED = 7


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """Open streams on replicas: each stream has so many events in a second."""

    streams: int
    replicas: int = 1
    pace: float = 20.0


@dataclass(frozen=True, slots=True)
class TransactionTime:
    """Seconds of one transaction: a fixed part, and one for each event in it."""

    fixed: float
    event: float


@dataclass(frozen=True, slots=True)
class Flow:
    """The work of all replicas in a second, and how long an event waits for its commit (seconds)."""

    events: float
    appends: float
    transactions: float
    wait_p50: float
    wait_p99: float


class Replica:
    """One replica on a clock of its own. ``run`` returns the counts of the measured time."""

    def __init__(self, streams: int, pace: float, time: TransactionTime, chance: random.Random) -> None:
        self._pace, self._time = pace, time
        self._agenda: list[tuple[float, int, str, int]] = []
        self._number = 0
        self._tokens: dict[int, list[float]] = defaultdict(list)
        """Times of the tokens of each run that are in no batch yet."""
        self._is_recording: set[int] = set()
        self._queue: list[int] = []
        self._batch: list[tuple[int, list[float]]] = []
        for stream in range(streams):
            self._plan(chance.random() / pace, "token", stream)

    def _plan(self, at: float, what: str, stream: int) -> None:
        self._number += 1  # equal times keep their order
        heapq.heappush(self._agenda, (at, self._number, what, stream))

    def run(self, seconds: float) -> tuple[int, int, list[float]]:
        """Return transactions, appends, and the waits of all events between the settling and the end."""
        transactions = appends = 0
        waits: list[float] = []
        while self._agenda and self._agenda[0][0] < SETTLING_SECONDS + seconds:
            now, _, what, stream = heapq.heappop(self._agenda)
            if what == "token":
                self._token(now, stream)
            elif what == "append":
                self._queue.append(stream)
            elif now >= SETTLING_SECONDS:
                transactions, appends = transactions + 1, appends + len(self._batch)
                waits += [now - at for _, tokens in self._batch for at in tokens]
            if what == "commit":
                self._committed(now)
            self._begin(now)
        return transactions, appends, waits

    def _token(self, now: float, stream: int) -> None:
        self._plan(now + 1 / self._pace, "token", stream)
        self._tokens[stream].append(now)
        self._record(now, stream)

    def _record(self, now: float, stream: int) -> None:
        if stream not in self._is_recording:
            self._is_recording.add(stream)
            self._plan(now + WINDOW_SECONDS, "append", stream)

    def _begin(self, now: float) -> None:
        """Begin the next batch, if none is being written."""
        if self._batch or not self._queue:
            return
        taken, self._queue = self._queue[:MAX_RUNS], self._queue[MAX_RUNS:]
        self._batch = [(stream, self._tokens.pop(stream)) for stream in taken]
        events = sum(len(tokens) for _, tokens in self._batch)
        self._plan(now + self._time.fixed + self._time.event * events, "commit", -1)

    def _committed(self, now: float) -> None:
        for stream, _ in self._batch:
            self._is_recording.discard(stream)
            if stream in self._tokens:
                self._record(now, stream)
        self._batch = []


def simulate(load: StreamLoad, time: TransactionTime, seconds: float = 3.0) -> Flow:
    """Return what a load does. Replicas are alike, so one of them stands for all."""
    chance = random.Random(SEED)  # noqa: S311 - phases of streams are no secret
    streams = load.streams / load.replicas
    transactions, appends, waits = Replica(round(streams), load.pace, time, chance).run(seconds)
    waits.sort()
    scale = load.replicas / seconds
    return Flow(
        events=len(waits) * scale,
        appends=appends * scale,
        transactions=transactions * scale,
        wait_p50=waits[len(waits) // 2] if waits else 0.0,
        wait_p99=waits[int(len(waits) * 0.99)] if waits else 0.0,
    )
