"""Plain generators: each runs in its own thread, and a blocked thread delays no other caller."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import pytest
from ag_ui.core import RunAgentInput
from msgspec.structs import replace

from agui_container.agents.as_agent import ThreadAgent, as_agent
from agui_container.ports import Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.threads import DaemonThreadPool
from tests.contexts import collect_items, run_context, run_input

WAIT = 120
"""Seconds after which a wait has failed; no test waits this long."""


def thread_agent(agent: object) -> ThreadAgent:
    adapted = as_agent(agent, "agent")
    assert isinstance(adapted, ThreadAgent)
    return adapted


async def items(agent: Callable[..., Iterator[Item]], ctx: RunContext | None = None) -> list[Item]:
    return await collect_items(thread_agent(agent).run(run_input("go"), ctx or run_context()))


async def wait_for_event(event: threading.Event) -> bool:
    return await asyncio.to_thread(event.wait, WAIT)


async def test_the_whole_generator_runs_in_one_thread_that_is_not_the_loops() -> None:
    threads: list[threading.Thread] = []

    def agent(_: RunAgentInput) -> Iterator[str]:
        try:
            threads.append(threading.current_thread())
            yield "a"
            threads.append(threading.current_thread())
            yield "b"
        finally:
            threads.append(threading.current_thread())

    await items(agent)
    assert len(threads) == 3
    assert len(set(threads)) == 1
    assert threads[0] is not threading.current_thread()
    assert threads[0].daemon


async def test_context_variables_reach_the_thread() -> None:
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("here")

    def agent(_: RunAgentInput) -> Iterator[str]:
        yield variable.get()

    assert await items(agent) == ["here"]


async def test_a_cancelled_run_returns_while_its_thread_is_blocked() -> None:
    began, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def agent(_: RunAgentInput) -> Iterator[str]:
        try:
            began.set()
            go_on.wait(WAIT)
            yield "too late"
            raise NotImplementedError
        finally:
            closed.set()

    running = asyncio.create_task(items(agent))
    assert await wait_for_event(began)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not closed.is_set()
    go_on.set()
    assert await wait_for_event(closed)


async def test_the_thread_stops_between_yields_once_its_run_is_cancelled() -> None:
    cancelled = threading.Event()

    def agent(_: RunAgentInput) -> Iterator[str]:
        yield "a"
        cancelled.set()
        yield "b"
        raise NotImplementedError

    assert await items(agent, run_context(cancelled.is_set)) == ["a"]


async def test_a_failure_after_the_end_is_in_the_log() -> None:
    began, go_on, logged = threading.Event(), threading.Event(), threading.Event()
    messages: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())
            logged.set()

    def agent(_: RunAgentInput) -> Iterator[str]:
        began.set()
        go_on.wait(WAIT)
        raise ValueError("secret")
        yield "never"

    ctx = replace(run_context(), logger=logging.Logger("alone"))  # noqa: LOG001 - heard by nobody else
    ctx.logger.addHandler(Handler())
    running = asyncio.create_task(items(agent, ctx))
    assert await wait_for_event(began)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    go_on.set()
    assert await wait_for_event(logged)
    assert messages == ["agent failed after its run had ended run=run"]


async def test_a_run_is_refused_while_all_threads_are_blocked() -> None:
    go_on = threading.Event()

    def agent(_: RunAgentInput) -> Iterator[str]:
        go_on.wait(WAIT)
        yield "a"

    busy = ThreadAgent(agent, thread_agent(agent).start, DaemonThreadPool(1))
    running = asyncio.create_task(collect_items(busy.run(run_input("go"), run_context())))
    await asyncio.sleep(0)
    running.cancel()  # the thread goes on
    with pytest.raises(AppError, match="Too many runs are open at once") as caught:
        await collect_items(busy.run(run_input("go"), run_context()))
    assert caught.value.code is ErrorCode.RATE_LIMIT_EXCEEDED
    go_on.set()
