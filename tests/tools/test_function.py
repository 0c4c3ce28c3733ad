"""A function as a tool: its call, its results, and blocking functions."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from agui_container.ports import RunContext, ToolContent, ToolError
from agui_container.runtime.daemon_threads import DaemonThreadPool
from agui_container.runtime.identity_limiter import IdentityLimiter
from agui_container.tools import threads
from agui_container.tools.function_tool import FunctionTool
from agui_container.tools.threads import run_in_thread
from tests.contexts import run_context

WAIT = 120
"""Seconds after which a wait has failed; no test waits this long."""


def tool(function: Callable[..., object], timeout: float | None = None) -> FunctionTool[..., object]:
    return FunctionTool("tool", "A tool.", {"type": "object"}, function, timeout)


async def call(function: Callable[..., object], **arguments: object) -> ToolContent:
    return await tool(function).call(arguments, run_context())


def test_the_spec_says_name_description_and_parameters() -> None:
    spec = FunctionTool("add", "Adds.", {"type": "object"}, print).spec
    assert (spec.name, spec.description, spec.parameters) == ("add", "Adds.", {"type": "object"})


# --- calling --------------------------------------------------------------------------------------------------------


async def test_a_plain_function_runs_in_another_thread() -> None:
    here = threading.get_ident()
    assert await call(lambda: threading.get_ident() != here) == "true"


async def test_an_async_function_runs_on_the_loop() -> None:
    here = asyncio.get_running_loop()

    async def function() -> bool:
        return asyncio.get_running_loop() is here

    assert await call(function) == "true"


async def test_a_plain_function_that_gives_a_coroutine_is_awaited() -> None:
    async def function(a: int) -> int:
        return a + 1

    assert await call(lambda a: function(a + 0), a=1) == "2"
    assert await call(partial(function), a=1) == "2"


async def test_the_context_is_passed_to_who_asks_for_it() -> None:
    def function(name: str, ctx: RunContext) -> str:
        return f"{name} {ctx.run_id}"

    def keyword_only(*, ctx: RunContext) -> str:
        return ctx.run_id

    assert await call(function, name="x") == "x run"
    assert await call(keyword_only) == "run"


async def test_a_model_cannot_pass_the_context() -> None:
    def function(ctx: RunContext) -> str:
        raise NotImplementedError

    with pytest.raises(ToolError, match=r"^tool: got an unexpected argument 'ctx'\.$"):
        await call(function, ctx="mine")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "tool: missing a required argument: 'a'."),
        ({"a": 1, "b": 2}, "tool: got an unexpected keyword argument 'b'."),
    ],
)
async def test_wrong_argument_names_never_reach_the_function(arguments: dict[str, object], sentence: str) -> None:
    def function(a: int) -> str:
        raise NotImplementedError

    with pytest.raises(ToolError) as caught:
        await call(function, **arguments)
    assert str(caught.value) == sentence


# --- results --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("text", "text"),
        ("", ""),
        (None, "null"),
        (3, "3"),
        (True, "true"),
        ({"a": [1, 2.5]}, '{"a":[1,2.5]}'),
        (("ä",), '["ä"]'),
        (float("nan"), '"NaN"'),
    ],
)
async def test_results_become_text(result: object, text: str) -> None:
    assert await call(lambda: result) == text


async def test_errors_of_the_function_are_raised() -> None:
    def refused() -> None:
        raise ToolError("No such city.")

    async def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ToolError, match="No such city"):
        await call(refused)
    with pytest.raises(ZeroDivisionError):
        await call(broken)


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


# --- blocking -------------------------------------------------------------------------------------------------------


async def test_a_blocking_function_does_not_block_the_loop() -> None:
    began, go_on = threading.Event(), threading.Event()

    def function() -> str:
        began.set()
        return "went on" if go_on.wait(WAIT) else "never let go"

    running = asyncio.create_task(call(function))
    assert await asyncio.to_thread(began.wait, WAIT)
    go_on.set()  # only a loop that runs while the tool blocks gets here
    assert await running == "went on"


async def test_calls_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_turns", IdentityLimiter("one tool", 1, 1))
    began, go_on = threading.Event(), threading.Event()

    def first() -> str:
        began.set()
        go_on.wait(WAIT)
        return "first"

    order: list[str] = []

    async def one(function: Callable[[], str]) -> None:
        order.append(await run_in_thread(function))

    async with asyncio.TaskGroup() as group:
        group.create_task(one(first))
        assert await asyncio.to_thread(began.wait, WAIT)
        waiting = group.create_task(one(lambda: "second"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        go_on.set()
    assert order == ["first", "second"]


async def test_calls_of_one_identity_leave_turns_and_threads_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_turns", IdentityLimiter("two tools", 2, 1))
    monkeypatch.setattr(threads, "_pool", DaemonThreadPool(4, 1))
    began, go_on = threading.Event(), threading.Event()

    def blocked() -> None:
        began.set()
        go_on.wait(WAIT)

    running = [asyncio.create_task(run_in_thread(blocked, "first")) for _ in range(5)]
    assert await asyncio.to_thread(began.wait, WAIT)
    assert await run_in_thread(lambda: "served", "second") == "served"
    running[0].cancel()  # its thread goes on
    with pytest.raises(ToolError, match="tool calls that do not end"):
        await running[1]
    go_on.set()
    await asyncio.wait(running)


async def test_a_machine_without_threads_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_pool", DaemonThreadPool(1))
    monkeypatch.setattr(threading.Thread, "start", start)
    for _ in range(2):
        with pytest.raises(ToolError, match="cannot start another tool call"):
            await call(lambda: "never")
