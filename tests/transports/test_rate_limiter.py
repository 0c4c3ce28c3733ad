"""The pace of one socket, with a clock of the test's own: never more than 250 frames in any second."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_container.transports.websocket_output import BURST, RATE, RateLimiter
from tests.requirements import requirement


class Now:
    """Monotonic seconds that stand still."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def departures(pauses: list[float], woken_late: float = 0.0, sent_late: float = 0.0) -> list[float]:
    """Return the times at which frames are sent that are ready after these pauses, each after the previous one."""
    now = Now()
    pace = RateLimiter(now)
    times = []
    for pause in pauses:
        now.seconds += pause
        while delay := pace.delay():
            now.seconds += delay + woken_late
        now.seconds += sent_late
        times.append(now.seconds)
    return times


def busiest_second(times: list[float]) -> int:
    """Return the largest number of frames in any second, with both of its ends and the precision of a clock."""
    return max(sum(1 for time in times if start <= time <= start + 1 + 1e-6) for start in times)


@requirement("ws.pace")
def test_a_lone_frame_is_never_delayed() -> None:
    pauses = [1 / RATE] * 500
    times = departures(pauses)
    assert times == pytest.approx([1_000 + at / RATE for at in range(1, 501)])


@requirement("ws.pace")
def test_a_burst_is_free_and_then_frames_leave_evenly() -> None:
    times = departures([0.0] * 150)
    assert times[: int(BURST)] == [1_000.0] * int(BURST)
    gaps = [later - earlier for earlier, later in zip(times[int(BURST) :], times[int(BURST) + 1 :], strict=False)]
    assert gaps == pytest.approx([1 / RATE] * len(gaps))


@requirement("ws.pace")
def test_an_endless_stream_stays_within_the_limit() -> None:
    assert busiest_second(departures([0.0] * 1_000)) <= 250


@requirement("ws.pace")
@given(
    st.lists(st.sampled_from([0.0, 0.0, 0.001, 0.004, 0.1, 0.3, 2.0]), min_size=1, max_size=400),
    st.sampled_from([0.0, 0.001, 0.35]),
    st.sampled_from([0.0, 0.002, 0.35]),
)
def test_no_second_is_ever_too_busy(pauses: list[float], woken_late: float, sent_late: float) -> None:
    assert busiest_second(departures(pauses, woken_late, sent_late)) <= 250


@requirement("ws.pace")
def test_one_frame_that_is_late_makes_no_second_too_busy() -> None:
    now = Now()
    pace, times = RateLimiter(now), list[float]()
    for number in range(600):
        while delay := pace.delay():
            now.seconds += delay
        if number == 100:
            now.seconds += 0.35
        times.append(now.seconds)
    assert busiest_second(times) <= 250


@requirement("ws.pace")
def test_silence_earns_no_more_than_a_burst() -> None:
    times = departures([60.0] + [0.0] * 300)
    assert busiest_second(times) <= 250


@requirement("ws.pace")
async def test_waiting_where_nothing_is_due_returns_at_once() -> None:
    pace = RateLimiter(Now())
    async with asyncio.timeout(0):
        await pace.wait()
