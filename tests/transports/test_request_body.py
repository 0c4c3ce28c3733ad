"""Large bodies are parsed off the event loop."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable

import pytest
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agui_container.engine.admission.quota import IdentityQuota, Limit, QuotaLease
from agui_container.engine.engine import Engine
from agui_container.main import build_app
from agui_container.protocol.errors import AppError
from agui_container.runtime.offload import LARGE_BYTES
from agui_container.settings import Settings
from agui_container.transports import request_body
from agui_container.transports.caller_middleware import QUOTA
from agui_container.transports.request_body import BodyBuffer, read_body, read_fields, read_request
from tests.engine.doubles import bytes_in_flight, caller, forever, make_service

LARGE = json.dumps({"title": "x" * LARGE_BYTES}).encode()


def request_from(receive: Receive, quota: IdentityQuota | None = None, *, identity: str = "first") -> Request:
    state = {QUOTA: quota or bytes_in_flight(500_000), "caller": caller(identity)}
    return Request({"type": "http", "headers": [], "state": state}, receive)


def client_with_chunks(*chunks: bytes) -> Receive:
    """Return ``receive`` of a client that sends these pieces of a body."""
    left = list(chunks)

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    return receive


@pytest.mark.parametrize(("read", "parser"), [(read_request, "parse"), (read_fields, "parse_fields")])
async def test_large_bodies_are_parsed_aside_and_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[Request, int, Engine], Awaitable[object]], parser: str
) -> None:
    alone, alongside = threading.Lock(), []

    def parsed(_: bytes, warn: object = None) -> object:
        alongside.append(not alone.acquire(blocking=False))
        assert threading.current_thread() is not threading.main_thread()
        alone.release()
        return {}

    monkeypatch.setattr(request_body, parser, parsed)
    service = make_service(forever)
    await asyncio.gather(*(read(request_from(client_with_chunks(LARGE)), len(LARGE), service) for _ in range(8)))
    assert alongside == [False] * 8


async def test_a_refusal_holds_nothing_of_the_bodies_that_were_refused_before() -> None:
    """An exception that is raised again holds the frames of each time, with all that they hold."""

    async def refused() -> list[bytes]:
        messages: list[Message] = [
            {"type": "http.request", "body": b"the half of it", "more_body": True},
            {"type": "http.disconnect"},
        ]

        async def receive() -> Message:
            return messages.pop(0)

        with pytest.raises(AppError, match="did not arrive") as raised:
            await read_from(receive, make_service(forever))
        buffers = [frame.frame.f_locals.get("buffer") for frame in raised.traceback]
        return [chunk for buffer in buffers if isinstance(buffer, BodyBuffer) for chunk in buffer.chunks]

    assert [await refused() for _ in range(3)] == [[b"the half of it"]] * 3


async def test_an_absent_body_adds_nothing() -> None:
    assert await read_fields(request_from(client_with_chunks(b"")), 100, make_service(forever)) == ({}, 0)


async def silent() -> Message:
    """A client that sends no body."""
    await asyncio.Event().wait()
    raise NotImplementedError


async def read_from(receive: Receive, service: Engine) -> bytes:
    request = request_from(receive)
    with QuotaLease(bytes_in_flight(500_000), Limit.BYTES_IN_FLIGHT) as lease:
        return await read_body(request, 100, service, lease)


async def test_a_callers_own_timeout_is_the_callers() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await read_from(silent, make_service(forever))


async def test_a_timeout_of_middleware_around_receive_is_the_middlewares() -> None:
    async def receive() -> Message:
        async with asyncio.timeout(0):
            return await silent()

    with pytest.raises(TimeoutError):
        await read_from(receive, make_service(forever))


async def test_a_body_that_does_not_arrive_in_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "READ_SECONDS", 0)
    with pytest.raises(AppError, match="did not arrive in full"):
        await read_from(silent, make_service(forever))


@pytest.mark.parametrize("is_draining", [False, True])
async def test_a_cancelled_request_is_refused_by_a_server_that_stops_and_cancelled_otherwise(
    *, is_draining: bool
) -> None:
    service, waits = make_service(forever), asyncio.Event()

    async def receive() -> Message:
        waits.set()
        return await silent()

    reading = asyncio.create_task(read_from(receive, service))
    await waits.wait()
    if is_draining:
        await service.drain(0)
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled() is not is_draining
    if is_draining:
        error = reading.exception()
        assert isinstance(error, AppError)
        assert error.code == "SHUTTING_DOWN"


async def test_a_timeout_of_middleware_around_a_request_is_the_middlewares() -> None:
    """The client has sent a part of its body, and waits."""
    app, timed_out = build_app(Settings(), make_service(forever)), list[bool]()
    scope = {"type": "http", "http_version": "1.1", "scheme": "http", "method": "POST", "headers": [], "root_path": ""}
    path = {"path": "/invocations", "raw_path": b"/invocations", "query_string": b""}

    class Impatient:
        def __init__(self, app: ASGIApp) -> None:
            self._app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            try:
                async with asyncio.timeout(0):
                    await self._app(scope, receive, send)
            except TimeoutError:
                timed_out.append(True)

    sent = list[Message]()

    async def send(message: Message) -> None:
        sent.append(message)

    app.add_middleware(Impatient)
    await app({**scope, **path}, silent, send)
    assert (timed_out, sent) == ([True], [])
