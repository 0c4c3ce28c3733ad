"""Large bodies are parsed off the event loop, and large results are encoded in pieces."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable

import pytest
from pydantic_core import from_json
from starlette.requests import Request
from starlette.types import Message, Receive

from agui_container.engine.engine import Engine
from agui_container.protocol.errors import AppError
from agui_container.threads import LARGE_BYTES
from agui_container.web import requests
from agui_container.web.requests import encode_result, read_body, read_fields, read_request
from tests.engine.doubles import caller, forever, make_service

LARGE = json.dumps({"title": "x" * LARGE_BYTES}).encode()


def request_from(receive: Receive) -> Request:
    return Request({"type": "http", "headers": [], "state": {"caller": caller("first")}}, receive)


def client_with_chunks(*chunks: bytes) -> Receive:
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

    monkeypatch.setattr(requests, parser, parsed)
    service = make_service(forever)
    await asyncio.gather(*(read(request_from(client_with_chunks(LARGE)), len(LARGE), service) for _ in range(8)))
    assert alongside == [False] * 8


async def silent() -> Message:
    await asyncio.Event().wait()
    raise NotImplementedError


async def read_from(receive: Receive, service: Engine) -> bytes:
    return await read_body(request_from(receive), 100, service)


async def test_a_callers_own_timeout_is_the_callers() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await read_from(silent, make_service(forever))


async def test_a_body_that_does_not_arrive_in_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "READ_SECONDS", 0)
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


async def test_a_large_result_is_encoded_while_other_tasks_run() -> None:
    items = [LARGE_BYTES * "x" for _ in range(5)]
    encoding = asyncio.create_task(encode_result({"messages": items}))
    turns = 0
    while not encoding.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= len(items)
    assert from_json(encoding.result()) == {"messages": items}
