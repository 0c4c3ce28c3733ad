"""Events of a run as an HTTP response: pushed to the connection, or sent in the response's own task."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar

import pytest
from ag_ui.core import CustomEvent, RunAgentInput
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agui_container.engine.engine import Engine
from agui_container.main import build_app
from agui_container.ports import Item
from agui_container.protocol.wire.sse_frames import sse_frames
from agui_container.settings import Settings
from agui_container.transports.event_stream import LAST_BYTES
from tests.engine.doubles import agent_of, caller, eventually, make_service
from tests.requirements import requirement
from tests.transports.exchange import AsgiExchange, send_at_once, sequence_numbers, task_name

TOKEN = b'"delta":"word'
EVENTS = list(range(1, 25))
"""The numbers of the events of ``paced_agent``: 20 tokens, and begin and end of the run and of its message."""


async def paced_agent(_: RunAgentInput) -> AsyncIterator[Item]:
    for _number in range(20):
        yield "word "
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def application(agent: object = paced_agent) -> tuple[FastAPI, Engine]:
    service = make_service(agent)
    await service.open()
    return build_app(Settings(), service), service


async def run_status(service: Engine) -> str:
    """Return the status of the run after its end."""
    run = service.runs.find_local(caller(), "t1", "r1")
    assert run is not None
    await eventually(lambda: run.log.has_ended)
    return run.status


def takes_all(_: bytes) -> bool:
    return True


# --- writers ---


@requirement("speed.push")
async def test_a_lone_event_is_pushed_to_the_connection() -> None:
    app, _ = await application()
    exchange = AsgiExchange(takes=takes_all)
    await exchange.answer(app)
    assert sequence_numbers(exchange.bodies) == EVENTS
    assert exchange.pushed >= 20
    sent = [body for message in exchange.messages if (body := message.get("body"))]
    assert not [body for body in sent if TOKEN in body]


@requirement("speed.push")
@pytest.mark.parametrize("takes", [None, takes_all], ids=["sent", "pushed"])
async def test_no_write_runs_in_the_task_of_the_agent(takes: object) -> None:
    agents = set[str]()

    async def agent(run_input: RunAgentInput) -> AsyncIterator[Item]:
        agents.add(task_name())
        async for item in paced_agent(run_input):
            yield item

    app, _ = await application(agent)
    exchange = AsgiExchange(takes=takes_all if takes else None)
    await exchange.answer(app)
    assert len(agents) == 1
    assert not agents & set(exchange.tasks)
    assert set(exchange.tasks) <= {task_name(), ""}


@requirement("speed.push", "speed.flush")
@pytest.mark.parametrize("seed", range(10))
async def test_the_frames_are_the_run_in_order_under_any_backpressure(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - as above

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(200):
            yield CustomEvent(name="n", value=number)
            for _turn in range(dice.choice((0, 0, 0, 1, 2, 5))):
                await asyncio.sleep(0)

    async def wait_for_room(_: bytes) -> None:
        for _turn in range(dice.choice((0, 0, 1, 3, 10))):
            room = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(room.set_result, None)
            await room

    app, _ = await application(agent)
    exchange = AsgiExchange(wait_for_room, takes=(lambda _: dice.random() < 0.7) if seed % 2 else None)
    await exchange.answer(app)
    assert sequence_numbers(exchange.bodies) == list(range(1, 203))


@requirement("speed.push")
@pytest.mark.parametrize("takes", [None, takes_all], ids=["sent", "pushed"])
async def test_the_beginning_of_a_run_is_written_before_its_agent_does_anything(takes: object) -> None:
    written_before = list[bytes]()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        written_before.extend(exchange.bodies)  # the agent might block the process here
        yield "word"

    app, _ = await application(agent)
    exchange = AsgiExchange(takes=takes_all if takes else None)
    await exchange.answer(app)
    assert b"RUN_STARTED" in b"".join(written_before)


@requirement("speed.flush")
@pytest.mark.parametrize(("size", "separate_end"), [(1, False), (LAST_BYTES, True)])
async def test_the_end_leaves_together_with_the_last_events_if_they_are_small(size: int, separate_end: bool) -> None:  # noqa: FBT001 - a parameter
    app, _ = await application(agent_of(CustomEvent(name="n", value="x" * size)))
    exchange = AsgiExchange()
    await exchange.answer(app)
    assert b"RUN_FINISHED" in exchange.bodies[-1]
    assert (exchange.messages[-1]["body"] == b"") is separate_end
    assert [message["more_body"] for message in exchange.messages[1:]] == [True] * (len(exchange.messages) - 2) + [
        False
    ]


@requirement("speed.push")
async def test_all_messages_of_a_response_are_sent_in_one_context_and_the_agent_has_another() -> None:
    span, seen, agents = ContextVar[str]("span", default="none"), list[str](), list[str]()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(20):
            yield CustomEvent(name="n", value=number)
            await asyncio.sleep(0)
            agents.append(span.get())

    async def trace(body: bytes) -> None:
        if not body:
            span.set("response")  # as tracing middleware does at the head of a response
        seen.append(span.get())
        token = span.set("write")
        await asyncio.sleep(0)
        span.reset(token)  # fails in another context

    app, _ = await application(agent)
    exchange = AsgiExchange(trace)
    await exchange.answer(app)
    assert sequence_numbers(exchange.bodies) == list(range(1, 23))
    assert set(seen) == {"response"}
    assert agents == ["none"] * 20


# --- middleware ---


class SendTimeout:
    """Middleware that gives each ``send`` no time to wait."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(0):
                await send(message)

        await self._app(scope, receive, send_in_time)


@requirement("speed.push")
@pytest.mark.parametrize("where", [b"RUN_STARTED", TOKEN, b"RUN_FINISHED"])
@pytest.mark.parametrize("takes", [None, takes_all], ids=["sent", "with a direct way"])
async def test_a_timeout_that_middleware_sets_for_a_write_ends_the_stream_and_not_the_run(
    where: bytes, takes: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def wait_for_ever(body: bytes) -> None:
        if where in body:
            await asyncio.Event().wait()

    app, service = await application()
    app.add_middleware(SendTimeout)
    exchange = AsgiExchange(wait_for_ever, takes=takes_all if takes else None)
    with pytest.raises(TimeoutError):
        await exchange.answer(app)
    assert await run_status(service) == "finished"
    assert "agent" not in caplog.text


@requirement("speed.push")
async def test_a_timeout_that_middleware_sets_for_a_write_harms_no_client_that_reads() -> None:
    app, service = await application()
    app.add_middleware(SendTimeout)
    exchange = AsgiExchange(takes=takes_all)
    await exchange.answer(app)
    assert sequence_numbers(exchange.bodies) == EVENTS
    assert await run_status(service) == "finished"


class BodyRecorder:
    """Middleware that records what is sent."""

    def __init__(self, app: ASGIApp, bodies: list[bytes]) -> None:
        self._app = app
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def record(message: Message) -> None:
            if message.get("body"):
                self._bodies.append(message["body"])
            await send(message)

        await self._app(scope, receive, record)


@requirement("speed.push")
async def test_middleware_sees_every_chunk() -> None:
    recorded = list[bytes]()
    app, _ = await application()
    app.add_middleware(BodyRecorder, bodies=recorded)
    exchange = AsgiExchange(takes=takes_all)
    await exchange.answer(app)
    assert sequence_numbers(recorded) == EVENTS
    assert (exchange.pushed, exchange.bodies) == (0, recorded)


# --- slow and failed writes ---


@requirement("speed.push")
async def test_a_write_that_waits_delays_neither_the_agent_nor_the_order() -> None:
    is_waiting, may_go_on, values = asyncio.Event(), asyncio.Event(), list[int]()

    async def agent(_: RunAgentInput) -> AsyncIterator[Item]:
        for number in range(50):
            values.append(number)
            yield CustomEvent(name="n", value=number)
            await asyncio.sleep(0)
        await is_waiting.wait()
        may_go_on.set()

    async def wait_for_room(body: bytes) -> None:
        if b'"value":7' in body:
            is_waiting.set()
            await may_go_on.wait()

    app, _ = await application(agent)
    exchange = AsgiExchange(wait_for_room)
    await exchange.answer(app)
    assert len(values) == 50
    assert sequence_numbers(exchange.bodies) == list(range(1, 53))


@requirement("speed.push")
@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("error", [RuntimeError, TimeoutError, asyncio.CancelledError])
@pytest.mark.parametrize("where", [TOKEN, b"RUN_FINISHED"])
async def test_a_write_that_raises_is_the_last_one_and_is_raised_to_the_server(
    caplog: pytest.LogCaptureFixture, where: bytes, error: type[BaseException], turns: int
) -> None:
    attempts = list[bytes]()

    async def fail(body: bytes) -> None:
        if where in body:
            attempts.append(body)
            for _turn in range(turns):
                await asyncio.sleep(0)
            raise error("the socket is gone")

    app, service = await application()
    with pytest.raises(error, match="the socket is gone"):
        await AsgiExchange(fail).answer(app)
    assert len(attempts) == 1
    assert await run_status(service) == "finished"
    assert "agent" not in caplog.text


@requirement("speed.push")
async def test_a_connection_that_raises_ends_the_stream_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    def fail(body: bytes) -> bool:
        if TOKEN in body:
            raise RuntimeError("the transport is gone")
        return True

    async def fail_too(body: bytes) -> None:
        fail(body)

    app, service = await application()
    exchange = AsgiExchange(fail_too, takes=fail)
    with pytest.raises(RuntimeError, match="the transport is gone"):
        await exchange.answer(app)
    assert sequence_numbers(exchange.bodies) == [1]
    assert await run_status(service) == "finished"
    assert "flush" not in caplog.text


@requirement("speed.push")
async def test_a_failure_behind_the_last_write_is_raised_although_the_server_says_that_all_is_sent() -> None:
    async def fail(body: bytes) -> None:
        if b"RUN_FINISHED" in body:
            exchange.leave()
            raise RuntimeError("behind the end")

    app, _ = await application()
    exchange = AsgiExchange(fail)
    with pytest.raises(RuntimeError, match="behind the end"):
        await exchange.answer(app)


@requirement("speed.push")
@pytest.mark.parametrize("takes", [None, takes_all], ids=["sent", "pushed"])
async def test_a_frame_that_cannot_be_encoded_ends_the_stream_and_not_the_run(
    monkeypatch: pytest.MonkeyPatch, takes: object
) -> None:
    def fail(data: Sequence[bytes], first: int) -> bytes:
        if TOKEN in b"".join(data):
            raise RuntimeError("no frame")
        return sse_frames(data, first)

    monkeypatch.setattr("agui_container.transports.formats.sse_frames", fail)
    app, service = await application()
    with pytest.raises(RuntimeError, match="no frame"):
        await AsgiExchange(send_at_once, takes=takes_all if takes else None).answer(app)
    assert await run_status(service) == "finished"
