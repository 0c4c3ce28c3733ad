"""Bodies are parsed off the event loop where they are large, whatever they ask for."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable

import pytest

from app.edge import body
from app.edge.body import LARGE_BYTES, understand, understand_fields

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


async def test_an_absent_body_adds_nothing() -> None:
    assert await understand_fields(b"") == {}
