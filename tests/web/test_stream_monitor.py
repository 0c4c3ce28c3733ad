"""The periodic check of all streams: its interval, and that it stops when there are none."""

import asyncio

import pytest

from agui_container.web.event_stream import CHECK_SECONDS, EventStreamResponse, StreamMonitor
from tests.engine.doubles import eventually


class CountingStream(EventStreamResponse):
    def __init__(self) -> None:
        self.checks = 0

    def check(self, now: float) -> None:
        assert abs(now - asyncio.get_running_loop().time()) < CHECK_SECONDS
        self.checks += 1


@pytest.fixture
async def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delay of each timer of the event loop; all timers are due at once."""
    loop, delays = asyncio.get_running_loop(), list[float]()
    call_later = loop.call_later

    def call_soon(delay: float, *rest: object) -> object:
        delays.append(delay)
        return call_later(0.0, *rest)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(loop, "call_later", call_soon)
    return delays


async def test_streams_are_checked_together_until_they_are_removed(delays: list[float]) -> None:
    monitor, streams = StreamMonitor(0.25), [CountingStream() for _ in range(50)]
    for stream in streams:
        monitor.add(stream)
    assert delays == [0.25]
    await eventually(lambda: min(stream.checks for stream in streams) >= 3)
    for stream in streams[1:]:
        monitor.remove(stream)
    seen, others = streams[0].checks, [stream.checks for stream in streams[1:]]
    await eventually(lambda: streams[0].checks > seen)
    assert [stream.checks for stream in streams[1:]] == others
    monitor.remove(streams[0])
    monitor.remove(streams[0])
