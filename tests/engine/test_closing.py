"""Connections are closed side by side."""

import asyncio

import pytest

from agui_container.engine.engine import close_all


async def test_what_fails_or_hangs_does_not_keep_the_others_open(caplog: pytest.LogCaptureFixture) -> None:
    closed = list[str]()

    async def close() -> None:
        closed.append("one")

    async def fail() -> None:
        raise OSError("reset by peer")

    async def hang() -> None:
        await asyncio.Event().wait()

    await close_all([fail, hang, close], 0.01)
    assert closed == ["one"]
    assert caplog.messages == ["closing failed"]
