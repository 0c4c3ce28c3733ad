"""One look at all streams: how often, and only while there are any."""

import asyncio

import pytest

from app.edge.lookout import Lookout
from tests.engine.doubles import eventually
from tests.requirements import requirement


class Stream:
    """Counts the looks at it."""

    def __init__(self) -> None:
        self.looks = 0

    def look(self, _: float) -> None:
        self.looks += 1


@requirement("http.keepalive")
async def test_streams_are_looked_at_together_until_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timers = asyncio.get_running_loop(), list[float]()
    call_later = loop.call_later

    def counted(delay: float, *rest: object) -> object:
        timers.append(delay)
        return call_later(0.0, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_later", counted)
    lookout, streams = Lookout(0.25), [Stream() for _ in range(50)]
    for stream in streams:
        lookout.watch(stream)
    assert timers == [0.25]
    await eventually(lambda: min(stream.looks for stream in streams) >= 3)
    for stream in streams[1:]:
        lookout.leave(stream)
    seen, others = streams[0].looks, [stream.looks for stream in streams[1:]]
    await eventually(lambda: streams[0].looks > seen)
    lookout.leave(streams[0])
    lookout.leave(streams[0])
    begun = len(timers)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [stream.looks for stream in streams[1:]] == others
    assert len(timers) == begun
    lookout.watch(streams[0])
    assert len(timers) == begun + 1
    lookout.leave(streams[0])


@requirement("http.keepalive")
def test_streams_of_the_next_event_loop_are_looked_at_too() -> None:
    lookout = Lookout(0.001)

    async def stay(*, until_looked_at: bool) -> None:
        stream = Stream()
        lookout.watch(stream)
        if until_looked_at:
            await eventually(lambda: stream.looks > 0)
        lookout.leave(stream)

    asyncio.run(stay(until_looked_at=False))  # it is closed before its look is due
    asyncio.run(stay(until_looked_at=True))
