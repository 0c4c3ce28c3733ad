"""The cursor as a property: after any number of cuts, over any transport, the pieces are the exact run."""

import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.replicas.conftest import Start
from tests.replicas.subscribers import (
    Piece,
    Pieces,
    Reading,
    Transport,
    as_shown,
    by_after,
    by_attach,
    by_last_event_id,
    over_sse,
)
from tests.requirements import requirement
from tests.sockets.agents import piece
from tests.sockets.client import post, run_input, say, text_of

HALF = 150
AT_REST = HALF + 2
"""Events of a run that waits for its second half: two begin it."""


@dataclass(frozen=True)
class Interruption:
    """One connection: its transport, its server, and the events after which it is closed.

    A slow connection reads the events of the second half only after the end of the run.
    """

    by: Transport
    server: int
    events: int
    is_slow: bool


CUTS = st.lists(
    st.builds(
        Interruption,
        by=st.sampled_from([by_after, by_last_event_id, by_attach]),
        server=st.integers(0, 1),
        events=st.integers(1, HALF),
        is_slow=st.booleans(),
    ),
    max_size=10,
)


@pytest.fixture(params=["memory", "sqlite", "replicas"])
def ports(request: pytest.FixtureRequest, start: Start) -> Sequence[int]:
    """Return the ports of the server with the run and of another one that can be asked for it."""
    if request.param == "memory":
        return [start().port] * 2
    if request.param == "sqlite":
        process: Start = request.getfixturevalue("process")
        return [process().port] * 2
    replica: Start = request.getfixturevalue("replica")
    return [replica().port, replica().port]


async def take_until(pieces: Pieces, reach: int) -> list[Piece]:
    """Return the pieces up to the event with this number."""
    took = []
    async for each in pieces:
        took.append(each)
        if each.seq >= reach:
            break
    return took


class InterruptedReader:
    """A reader of a run whose second half waits. Its connections are closed again and again."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._asked = run_input(f"halves {HALF}")
        self.seen: list[Piece] = []

    async def begin(self) -> Reading:
        """Start the run with a reader that is never interrupted."""
        return await Reading.live(over_sse(self._ports[0], post(self._asked)))

    async def go_on(self) -> None:
        """Release the second half of the run."""
        await say(self._ports[0], f"release {self._asked['runId']}")

    @property
    def at(self) -> int:
        """Return the number of the last event that was read."""
        return self.seen[-1].seq if self.seen else 0

    def read(self, by: Transport, server: int) -> Pieces:
        """Read on from there."""
        return by(self._ports[server], self._asked["threadId"], self._asked["runId"], self.at)

    async def before(self, cut: Interruption) -> None:
        """A connection while the run waits."""
        if self.at < AT_REST:
            async with aclosing(self.read(cut.by, cut.server)) as pieces:
                self.seen += await take_until(pieces, min(self.at + cut.events, AT_REST))

    async def between(self, cut: Interruption, whole: Reading) -> None:
        """The connection during which the run goes on."""
        reach = self.at + 1 + cut.events
        async with aclosing(self.read(cut.by, cut.server)) as pieces:
            if self.at < AT_REST:
                self.seen += await take_until(pieces, self.at)
            await self.go_on()
            if cut.is_slow:
                await whole.whole()
            if self.at < reach:
                self.seen += await take_until(pieces, reach)

    async def after(self, by: Transport, server: int, events: int) -> None:
        """A connection to a run that goes on or is over."""
        if not self.seen or not self.seen[-1].is_last:
            async with aclosing(self.read(by, server)) as pieces:
                self.seen += await take_until(pieces, self.at + events)


@requirement("durable.cursor")
@given(cuts=CUTS, place=st.integers(0, 9), last=st.sampled_from([by_after, by_last_event_id, by_attach]))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_the_pieces_of_a_reader_that_is_cut_are_the_exact_run(
    ports: Sequence[int], cuts: list[Interruption], place: int, last: Transport
) -> None:
    cutting = InterruptedReader(ports)
    reading = await cutting.begin()
    for cut in cuts[:place]:
        await cutting.before(cut)
    if place < len(cuts):
        await cutting.between(cuts[place], reading)
    else:
        await cutting.go_on()
    for cut in cuts[place + 1 :]:
        await cutting.after(cut.by, cut.server, cut.events)
    await cutting.after(last, 1, 2 * AT_REST)
    whole = [each.data for each in await reading.whole()]
    assert [each.data for each in cutting.seen] == as_shown(whole, cutting.seen)
    assert cutting.at == len(whole)
    assert text_of(map(json.loads, whole)) == "".join(map(piece, range(2 * HALF)))
