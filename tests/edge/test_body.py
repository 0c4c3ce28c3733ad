"""Bodies are parsed off the event loop where they are large, whatever they ask for."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable

import pytest
from starlette.requests import Request
from starlette.types import Message

from app.core.errors import AppError
from app.edge import body
from app.edge.body import LARGE_BYTES, read_body, understand, understand_fields

LARGE = json.dumps({"title": "x" * LARGE_BYTES}).encode()


@pytest.mark.parametrize(("read", "parser"), [(understand, "parse"), (understand_fields, "parse_fields")])
async def test_large_bodies_are_parsed_aside_and_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[bytes], Awaitable[object]], parser: str
) -> None:
    alone, alongside = threading.Lock(), []

    def parsed(_: bytes, tell: object = None) -> object:
        alongside.append(not alone.acquire(blocking=False))
        assert threading.current_thread() is not threading.main_thread()
        alone.release()
        return {}

    monkeypatch.setattr(body, parser, parsed)
    await asyncio.gather(*(read(LARGE) for _ in range(8)))
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
            await read_body(Request({"type": "http", "headers": []}, receive), 100)
        return [chunk for frame in raised.traceback for chunk in frame.frame.f_locals.get("chunks", ())]

    assert [await refused() for _ in range(3)] == [[b"the half of it"]] * 3


async def test_an_absent_body_adds_nothing() -> None:
    assert await understand_fields(b"") == {}
