"""Clients of a stream that leave, that take nothing, that wait in silence, and that ask for the headers only."""

import asyncio
import logging
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from typing import Self

import pytest
from ag_ui.core import CustomEvent, EventType, RunAgentInput
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agui_container.engine.log.subscription import PushBatch, Subscription
from agui_container.engine.persistence import remote_run
from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.protocol.wire.envelope import Batch
from agui_container.settings import Settings
from agui_container.transports import event_stream
from agui_container.transports.event_stream import STALLED_SECONDS, EventStreamResponse, StreamMonitor
from agui_container.transports.formats import SseFormat
from tests.engine.doubles import asking, caller, eventually, forever, make_service, wait_for_event
from tests.engine.replicas import Replicas
from tests.requirements import requirement
from tests.transports.exchange import AsgiExchange, sequence_numbers

KEEPALIVE = 15.0
HISTORY = 50
"""Events of ``ReplayedSubscription``."""


def make_response(subscription: Subscription, monitor: StreamMonitor | None = None) -> EventStreamResponse:
    return EventStreamResponse(subscription, SseFormat(), "request-1", monitor or StreamMonitor(KEEPALIVE))


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


class SubscriptionDouble:
    """A subscription to nothing."""

    def __init__(self) -> None:
        self.run = Namespace(log=None, key=Namespace(run_id="r1"))
        self.is_exhausted = False
        self.closed = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        await self.closed.wait()
        raise StopAsyncIteration

    def push_to(self, push: PushBatch) -> None:
        """Push nothing."""

    def interrupt(self) -> None:
        """Hand out nothing."""

    def close(self, *, may_stay_unread: bool = False) -> None:
        self.closed.set()


class StoreSubscription(SubscriptionDouble):
    """A subscription that is reading the store when its client leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.is_reading, self.answers = asyncio.Event(), 0

    async def __anext__(self) -> Batch:
        self.is_reading.set()
        await self.closed.wait()
        await asyncio.sleep(0)
        self.answers += 1
        raise StopAsyncIteration


class ReplayedSubscription(SubscriptionDouble):
    """A subscription that is far behind."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0

    async def __anext__(self) -> Batch:
        if self.closed.is_set() or self.batches == HISTORY:
            raise StopAsyncIteration
        self.batches += 1
        self.is_exhausted = self.batches == HISTORY
        return Batch("r1", self.batches, [EventType.CUSTOM], [b"{}"])


# --- disconnected clients ---


@requirement("speed.push")
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
    assert subscription.run.presence.local == 0
    await eventually(lambda: subscription.run.log.has_ended)


@requirement("speed.push")
async def test_a_client_that_leaves_in_silence_leaves_nothing_behind() -> None:
    service = make_service(forever)
    subscription = await service.admit(asking(), caller())
    exchange = AsgiExchange()
    answering = asyncio.create_task(exchange.answer(make_response(subscription)))
    await eventually(lambda: exchange.bodies)
    exchange.leave()
    await answering
    assert subscription.run.presence.local == 0
    assert exchange.messages[-1]["more_body"] is False
    await service.drain(0)


@requirement("speed.push")
async def test_a_read_from_the_store_is_not_cut_off_when_the_client_leaves() -> None:
    subscription, exchange = StoreSubscription(), AsgiExchange()
    answering = asyncio.create_task(exchange.answer(make_response(subscription)))
    await wait_for_event(subscription.is_reading)
    exchange.leave()
    await answering
    assert subscription.answers == 1


@requirement("speed.push")
async def test_a_client_that_leaves_amid_a_replay_ends_it() -> None:
    async def leave(body: bytes) -> None:
        if body:
            exchange.leave()
            await asyncio.sleep(0)

    subscription, exchange = ReplayedSubscription(), AsgiExchange(leave)
    await exchange.answer(make_response(subscription))
    assert subscription.batches < 5
    assert subscription.closed.is_set()


@requirement("speed.push", "http.keepalive")
async def test_nothing_is_written_behind_the_end() -> None:
    async def check(_: bytes) -> None:
        response.check(now() + KEEPALIVE)

    subscription, exchange = ReplayedSubscription(), AsgiExchange(check)
    response = make_response(subscription)
    await exchange.answer(response)
    response.check(now() + 1_000)
    await asyncio.sleep(0)
    assert [message["more_body"] for message in exchange.messages[1:]] == [True] * (HISTORY - 1) + [False]
    assert sequence_numbers(exchange.bodies) == list(range(1, HISTORY + 1))


# --- slow clients ---


@requirement("speed.push")
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
    assert subscription.run.presence.local == 0
    assert f"slow reader disconnected run=r1 idle_seconds={STALLED_SECONDS}" in caplog.messages


@requirement("speed.push")
@pytest.mark.parametrize("stuck", [b'"value":0', b""], ids=["an event", "the end"])
async def test_the_monitor_disconnects_a_client_whatever_it_does_not_take(
    monkeypatch: pytest.MonkeyPatch, stuck: bytes
) -> None:
    monkeypatch.setattr(event_stream, "STALLED_SECONDS", 0.05)
    monkeypatch.setattr(event_stream, "LAST_BYTES", 0)  # the end is a write of its own
    monkeypatch.setattr(event_stream, "CHECK_SECONDS", 0.01)

    async def wait_at_stuck(body: bytes) -> None:
        if (stuck in body) if stuck else (not body and exchange.messages):
            await wait_for_ever(body)

    service = make_service(five_events)
    await service.open()
    exchange = AsgiExchange(wait_at_stuck)
    await exchange.answer(build_app(Settings(), service))
    run = service.runs.find_local(caller(), "t1", "r1")
    assert run is not None
    await eventually(lambda: run.log.has_ended)
    assert (run.presence.local, run.status) == (0, "finished")
    assert exchange.messages[-1].get("more_body", True)


@requirement("speed.push")
async def test_a_slow_client_whose_write_ends_slowly_harms_no_other_stream() -> None:
    """Middleware may have something to do before its ``send`` is cancelled; checks and the client go on meanwhile."""
    is_cancelled, may_end = asyncio.Event(), asyncio.Event()

    async def end_slowly(_: bytes) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            is_cancelled.set()
            await may_end.wait()

    service = make_service(forever)
    response, exchange = make_response(await service.admit(asking(), caller())), AsgiExchange(end_slowly)
    answering = asyncio.create_task(exchange.answer(response))
    await asyncio.sleep(0)
    response.check(now() + STALLED_SECONDS)
    await wait_for_event(is_cancelled)
    response.check(now() + STALLED_SECONDS)
    exchange.leave()
    await asyncio.sleep(0)
    response.check(now() + STALLED_SECONDS)
    may_end.set()
    await answering
    await service.drain(0)


# --- silence ---


class OpenStream:
    """An open stream and its agent, which yields the items of the test."""

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


@requirement("http.keepalive")
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
            assert SseFormat.comment not in stream.exchange.bodies
            assert stream.exchange.pushed > 0
        stream.response.check(begin + 40)
        await stream.has_written(SseFormat.comment)
        stream.items.put_nowait("more")
        await stream.has_written(b"more")
    assert stream.exchange.bodies.count(SseFormat.comment) == 1


@requirement("http.keepalive")
async def test_a_silent_stream_of_a_run_on_another_replica_gets_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_run, "SILENCE_SECONDS", 0.001)
    replicas = Replicas()
    here, there = await replicas.start(forever), await replicas.start(forever)
    own = await here.admit(asking(), caller())
    await anext(own)
    response, exchange = make_response(await there.attach(caller(), "t1", "r1", 0)), AsgiExchange(takes=takes_all)
    answering = asyncio.create_task(exchange.answer(response))
    await eventually(lambda: exchange.bodies)
    response.check(now())
    response.check(now() + KEEPALIVE)
    await eventually(lambda: SseFormat.comment in exchange.bodies)
    assert sequence_numbers(exchange.bodies) == [1]
    own.run.cancel()
    await answering
    assert b"RUN_FINISHED" in exchange.bodies[-1]
    await here.drain(0)


class PassThroughMiddleware:
    """Middleware that wraps ``send`` and changes nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def pass_on(message: Message) -> None:
            await send(message)

        await self._app(scope, receive, pass_on)


@requirement("http.keepalive")
async def test_a_silent_stream_behind_middleware_gets_comments() -> None:
    service = make_service(forever)
    await service.open()
    app = build_app(Settings(keepalive=0.001), service)
    app.add_middleware(PassThroughMiddleware)
    exchange = AsgiExchange(takes=takes_all)
    answering = asyncio.create_task(exchange.answer(app))
    await eventually(lambda: exchange.bodies.count(SseFormat.comment) == 3)
    exchange.leave()
    await answering
    assert exchange.pushed == 0
    await service.drain(0)


# --- headers only ---


@requirement("http.keepalive")
async def test_a_head_request_gets_headers_only_and_reads_nothing() -> None:
    service = make_service(forever)
    await service.open()
    subscription = await service.admit(asking(), caller())
    exchange = AsgiExchange(takes=takes_all)
    await exchange.answer(build_app(Settings(), service), "HEAD", "/runs/r1/events")
    start, end = exchange.messages
    assert start["status"] == 200
    assert (b"content-type", b"text/event-stream; charset=utf-8") in start["headers"]
    assert (end["body"], end["more_body"], exchange.bodies) == (b"", False, [])
    assert subscription.run.presence.local == 1
    assert not subscription.run.log.has_ended
    await service.drain(0)
