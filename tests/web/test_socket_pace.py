"""The pace and the order of one socket, with a clock of the test's own: never more than 230 frames in any second.

AgentCore lets 250 through, and a network may bunch them.
"""

import asyncio
import json
import random
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from ag_ui.core import CustomEvent, RunAgentInput
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Send

from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.settings import Settings
from agui_container.web.direct_writes import CONNECTION_EXTENSION
from agui_container.web.websocket_output import RateLimiter
from tests.engine.doubles import Json, ask, make_service


class Now:
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


@given(
    st.lists(st.sampled_from([0.0, 0.0, 0.001, 0.004, 0.1, 0.3, 2.0]), min_size=1, max_size=400),
    st.sampled_from([0.0, 0.001, 0.35]),
    st.sampled_from([0.0, 0.002, 0.35]),
)
def test_no_second_is_ever_too_busy(pauses: list[float], woken_late: float, sent_late: float) -> None:
    assert busiest_second(departures(pauses, woken_late, sent_late)) <= 230


EVENTS = 1_000
SCOPE = {"type": "websocket", "path": "/ws", "raw_path": b"/ws", "root_path": "", "query_string": b"", "headers": []}

Sent = list[tuple[float, Json]]


class InstantSelector(selectors.DefaultSelector):
    """A selector that does not wait but advances the time."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits, and for nothing that will come"
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.hurried = InstantSelector()
        super().__init__(self.hurried)

    def time(self) -> float:
        return self.hurried.now


def run(test: Callable[[], Coroutine[Any, Any, Sent]]) -> Sent:
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(test())


def loop() -> Loop:
    running = asyncio.get_running_loop()
    assert isinstance(running, Loop)
    return running


async def exchange_frames(
    agent: object,
    frames: Mapping[float, list[Json]],
    until: int,
    takes: Callable[[], bool] = lambda: False,
    seconds: float = 0.0,
) -> Sent:
    """Return the frames that a connection sends, up to ``until``, when it receives these frames at these times.

    ``takes`` decides whether the connection takes an event at once. ``seconds`` are what ``send`` needs for a pong.
    """
    app, sent, incoming = build_app(Settings(), make_service(agent)), Sent(), asyncio.Queue[Message]()
    incoming.put_nowait({"type": "websocket.connect"})

    def come(bodies: list[Json]) -> None:
        for body in bodies:
            incoming.put_nowait({"type": "websocket.receive", "text": json.dumps(body)})

    for at, bodies in frames.items():
        loop().call_at(at, come, bodies)

    def record(frame: str | bytes) -> None:
        sent.append((loop().time(), json.loads(frame)))
        if len(sent) == until:
            incoming.put_nowait({"type": "websocket.disconnect", "code": 1000})

    async def send(message: Message) -> None:
        if text := message.get("text"):
            await asyncio.sleep(seconds if "pong" in text else 0)
            record(text)

    def write_directly(_: Send, data: bytes) -> bool:
        if is_taken := takes():
            record(data)
        return is_taken

    extensions = {CONNECTION_EXTENSION: SimpleNamespace(write_directly=write_directly)}
    await app({**SCOPE, "extensions": extensions}, incoming.get, send)
    return sent


async def chatty(_: RunAgentInput) -> AsyncIterator[Item]:
    for number in range(EVENTS):
        yield CustomEvent(name="number", value=number)


def values(sent: Sent) -> list[object]:
    return [frame["value"] for _, frame in sent if frame.get("type") == "CUSTOM"]


def pings(count: int) -> list[Json]:
    return [{"command": {"type": "ping"}, "id": number} for number in range(count)]


def answers(sent: Sent) -> list[object]:
    return [frame["id"] for _, frame in sent if frame.get("control") == "pong"]


def test_a_connection_keeps_the_pace_and_makes_use_of_it() -> None:
    sent = run(lambda: exchange_frames(chatty, {0.0: [ask()]}, EVENTS + 2))
    times = [at for at, _ in sent]
    assert values(sent) == list(range(EVENTS))
    assert 200 <= busiest_second(times) <= 230
    assert times[-1] < EVENTS / 200


def test_lone_events_are_sent_when_they_are_said() -> None:
    said = list[float]()

    async def slow(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(100):
            said.append(loop().time())
            yield CustomEvent(name="number", value=number)
            await asyncio.sleep(0.01)

    sent = run(lambda: exchange_frames(slow, {0.0: [ask()]}, 102))
    assert [at for at, frame in sent if frame.get("type") == "CUSTOM"] == said


@pytest.mark.parametrize("late", [0.0, 0.35, 0.9])
def test_answers_amid_a_stream_have_their_turn_and_the_pace_is_kept_when_the_process_stalls(late: float) -> None:
    def stall() -> None:
        loop().hurried.now += late

    async def stalled() -> Sent:
        for at in (1.0, 2.0):
            loop().call_at(at, stall)
        return await exchange_frames(chatty, {0.0: [ask()], 0.99: pings(40)}, EVENTS + 2 + 40)

    sent = run(stalled)
    assert answers(sent) == list(range(40))
    assert max(at for at, frame in sent if "control" in frame) < 1.99 + late
    assert values(sent) == list(range(EVENTS))
    assert busiest_second([at for at, _ in sent]) <= 230


@pytest.mark.parametrize("seed", range(4))
def test_events_that_the_connection_takes_at_once_have_their_turn_in_the_order_and_the_pace(seed: int) -> None:
    dice, taken = random.Random(seed), list[bool]()  # noqa: S311 - as in a game

    async def uneven(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(EVENTS):
            yield CustomEvent(name="number", value=number)
            if dice.random() < 0.8:
                await asyncio.sleep(0.001 if dice.random() < 0.98 else 0.5)

    def takes() -> bool:
        taken.append(dice.random() < 0.7)
        return taken[-1]

    sent = run(lambda: exchange_frames(uneven, {0.0: [ask()], 1.0: pings(40)}, EVENTS + 2 + 40, takes))
    assert (values(sent), answers(sent)) == (list(range(EVENTS)), list(range(40)))
    assert busiest_second([at for at, _ in sent]) <= 230
    assert sum(taken) > EVENTS / 50


def test_an_event_is_not_sent_before_answers_that_wait() -> None:
    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(2):
            yield CustomEvent(name="number", value=number)
            await asyncio.sleep(1.5)

    frames = {0.0: [ask()], 1.0: pings(2)}
    sent = run(lambda: exchange_frames(agent, frames, 6, takes=lambda: True, seconds=0.3))
    assert [frame.get("value", frame.get("id")) for _, frame in sent[1:-1]] == [0, 0, 1, 1]
    assert [frame.get("control") for _, frame in sent[1:-1]] == [None, "pong", "pong", None]
