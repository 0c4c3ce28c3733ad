"""A function as a tool: its call, its results, and blocking functions."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from agui_container.ports import ToolContent, ToolError
from agui_container.threads import DaemonThreadPool
from agui_container.tools import threads
from agui_container.tools.function_tool import FunctionTool
from tests.contexts import run_context

WAIT = 120
"""Seconds after which a wait has failed; no test waits this long."""


def tool(function: Callable[..., object], timeout: float | None = None) -> FunctionTool[..., object]:
    return FunctionTool("tool", "A tool.", {"type": "object"}, function, timeout)


async def call(function: Callable[..., object], **arguments: object) -> ToolContent:
    return await tool(function).call(arguments, run_context())


async def test_a_call_is_given_up_after_its_timeout() -> None:
    async def function() -> None:
        await asyncio.Event().wait()

    with pytest.raises(ToolError, match=r"^tool did not answer within 0 seconds\.$"):
        await tool(function, timeout=0).call({}, run_context())


async def test_a_timeout_inside_the_function_is_its_own() -> None:
    async def function() -> None:
        raise TimeoutError("the database")

    with pytest.raises(TimeoutError, match="the database"):
        await tool(function, timeout=WAIT).call({}, run_context())


async def test_a_blocking_function_does_not_block_the_loop() -> None:
    began, go_on = threading.Event(), threading.Event()

    def function() -> str:
        began.set()
        return "went on" if go_on.wait(WAIT) else "never let go"

    running = asyncio.create_task(call(function))
    assert await asyncio.to_thread(began.wait, WAIT)
    go_on.set()  # only a loop that runs while the tool blocks gets here
    assert await running == "went on"


async def test_a_call_is_refused_while_all_threads_are_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pool", DaemonThreadPool(1))
    began, go_on = threading.Event(), threading.Event()

    def blocked() -> None:
        began.set()
        go_on.wait(WAIT)

    running = asyncio.create_task(call(blocked))
    assert await asyncio.to_thread(began.wait, WAIT)
    running.cancel()  # its thread goes on
    with pytest.raises(ToolError, match="tool calls that do not end"):
        await call(blocked)
    go_on.set()
