"""Clients of a stream that leave, that take nothing and that wait in silence, and the check that sees them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Self

import pytest
from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item
from agui_container.run.subscription import Subscription
from agui_container.web.event_stream import CHECK_SECONDS, STALLED_SECONDS, EventStreamResponse, StreamMonitor
from agui_container.web.formats import COMMENT
from tests.engine.doubles import asking, caller, eventually, make_service, wait_for_event
from tests.web.exchange import AsgiExchange, sequence_numbers

KEEPALIVE = 15.0


def make_response(subscription: Subscription, monitor: StreamMonitor | None = None) -> EventStreamResponse:
    return EventStreamResponse(subscription, caller(), monitor or StreamMonitor(KEEPALIVE))


def now() -> float:
    return asyncio.get_running_loop().time()


async def wait_for_ever(_: bytes) -> None:
    await asyncio.Event().wait()


def takes_all(_: bytes) -> bool:
    return True


async def five_events(_: RunAgentInput) -> AsyncIterator[Item]:
    for number in range(5):
        yield CustomEvent(name="n", value=number)
        await asyncio.sleep(0)


async def test_a_client_that_leaves_while_a_write_waits_leaves_nothing_behind() -> None:
    is_waiting = asyncio.Event()

    async def wait_at_two(body: bytes) -> None:
        if b'"value":2' in body:
            is_waiting.set()
            await wait_for_ever(body)

    service = make_service(five_events)
    subscription = await service.admit(asking(), caller())
    exchange = AsgiExchange(wait_at_two)
    answering = asyncio.create_task(exchange.answer(make_response(subscription)))
    await wait_for_event(is_waiting)
    exchange.leave()
    await answering
    assert 1 <= sequence_numbers(exchange.bodies)[-1] <= 3
    assert service.readers.open_count == 0
    await eventually(lambda: subscription.run.log.has_ended)


@pytest.mark.parametrize("takes", [None, lambda _: False], ids=["no direct way", "a full connection"])
async def test_a_client_that_takes_nothing_is_disconnected(
    caplog: pytest.LogCaptureFixture, takes: Callable[[bytes], bool] | None
) -> None:
    caplog.set_level(logging.INFO)
    service = make_service(five_events)
    subscription = await service.admit(asking(), caller())
    response, exchange = make_response(subscription), AsgiExchange(wait_for_ever, takes)
    answering = asyncio.create_task(exchange.answer(response))
    await eventually(lambda: subscription.run.log.has_ended)
    response.check(now() + STALLED_SECONDS - 1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not answering.done()
    response.check(now() + STALLED_SECONDS)
    await answering
    assert service.readers.open_count == 0
    assert f"slow reader disconnected run=r1 idle_seconds={STALLED_SECONDS}" in caplog.messages


class OpenStream:
    def __init__(self, takes: Callable[[bytes], bool] | None) -> None:
        self.items = asyncio.Queue[str]()
        self.exchange = AsgiExchange(takes=takes)
        self._service = make_service(self._agent)

    async def _agent(self, _: RunAgentInput) -> AsyncIterator[Item]:
        while True:
            yield await self.items.get()

    async def __aenter__(self) -> Self:
        self.response = make_response(await self._service.admit(asking(), caller()))
        self._answering = asyncio.create_task(self.exchange.answer(self.response))
        await self.has_written(b"RUN_STARTED")
        self.response.check(now())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.exchange.leave()
        await self._answering
        await self._service.drain(0)

    async def has_written(self, body: bytes) -> None:
        await eventually(lambda: body in b"".join(self.exchange.bodies))


@pytest.mark.parametrize("takes", [None, takes_all], ids=["sent", "pushed"])
async def test_a_silent_stream_gets_a_comment_and_one_with_tokens_does_not(
    takes: Callable[[bytes], bool] | None,
) -> None:
    async with OpenStream(takes) as stream:
        begin = now()
        stream.items.put_nowait("word")
        await stream.has_written(b"word")
        stream.response.check(begin + 20)
        await asyncio.sleep(0)
        if takes is not None:
            assert COMMENT not in stream.exchange.bodies
            assert stream.exchange.pushed > 0
        stream.response.check(begin + 40)
        await stream.has_written(COMMENT)
        stream.items.put_nowait("more")
        await stream.has_written(b"more")
    stream.response.check(begin + 1_000)
    await asyncio.sleep(0)
    assert stream.exchange.bodies.count(COMMENT) == 1, "nothing is written behind the end"


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
