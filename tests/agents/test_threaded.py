"""Plain generators: each runs in its own thread, and a blocked thread delays no other caller."""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

import pytest
from ag_ui.core import RunAgentInput

from agui_container.agents.as_agent import ThreadAgent, as_agent
from agui_container.ports import Caller, Item, RunContext
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.runtime.daemon_threads import DaemonThreadPool
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
    """Wait for a thread without stopping the loop."""
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


async def test_a_blocking_agent_does_not_block_the_loop() -> None:
    began, go_on = threading.Event(), threading.Event()

    def agent(_: RunAgentInput) -> Iterator[str]:
        began.set()
        yield "went on" if go_on.wait(WAIT) else "never let go"

    running = asyncio.create_task(items(agent))
    assert await wait_for_event(began)
    go_on.set()  # only a loop that runs while the agent blocks gets here
    assert await running == ["went on"]


# --- failures -------------------------------------------------------------------------------------------------------


async def test_threads_of_one_caller_leave_room_for_those_of_another() -> None:
    go_on = threading.Event()

    def agent(_: RunAgentInput) -> Iterator[str]:
        go_on.wait(WAIT)
        yield "a"

    busy = ThreadAgent(agent, thread_agent(agent).start, DaemonThreadPool(4, 2))
    first, second = (
        replace(run_context(), caller=Caller("everybody", "request", identity=name)) for name in ("first", "second")
    )
    running = [asyncio.create_task(collect_items(busy.run(run_input("go"), first))) for _ in range(2)]
    await asyncio.sleep(0)
    for task in running:
        task.cancel()  # the threads go on
    with pytest.raises(AppError, match="limit of 2 threads of agents for one identity") as caught:
        await collect_items(busy.run(run_input("go"), first))
    assert caught.value.code is ErrorCode.RATE_LIMIT_EXCEEDED
    served = asyncio.create_task(collect_items(busy.run(run_input("go"), second)))
    await asyncio.sleep(0)
    go_on.set()
    assert await served == ["a"]


async def test_a_machine_without_threads_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def agent(_: RunAgentInput) -> Iterator[str]:
        yield "never"

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    busy = ThreadAgent(agent, thread_agent(agent).start, DaemonThreadPool(1))
    for _ in range(2):
        with pytest.raises(AppError, match="no thread left"):
            await collect_items(busy.run(run_input("go"), run_context()))


# --- cancellation ---------------------------------------------------------------------------------------------------


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


def test_a_thread_that_ends_after_the_loop_harms_nobody() -> None:
    began, go_on, threads = threading.Event(), threading.Event(), list[threading.Thread]()

    def agent(_: RunAgentInput) -> Iterator[str]:
        threads.append(threading.current_thread())
        began.set()
        go_on.wait(WAIT)
        yield "too late"

    async def abandon() -> None:
        running = asyncio.create_task(items(agent))
        assert await wait_for_event(began)
        running.cancel()

    asyncio.run(abandon())
    go_on.set()
    threads[0].join(WAIT)
    assert not threads[0].is_alive()


# --- the exit of the process ------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[2]
SECONDS = 300

BLOCKED = """
import asyncio, threading
from agui_container.agents.as_agent import as_agent
from agui_container.tools.function_tool import FunctionTool
from tests.contexts import collect_items, run_context, run_input

began = threading.Semaphore(0)

def block():
    began.release()
    threading.Event().wait()

def agent(input):
    block()
    yield "never"

async def main():
    tool = FunctionTool("block", "Blocks.", {}, block)
    runs = [collect_items(as_agent(agent, "agent").run(run_input("go"), run_context())), tool.call({}, run_context())]
    tasks = [asyncio.create_task(run) for run in runs]
    for task in tasks:
        await asyncio.to_thread(began.acquire)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

asyncio.run(main())
"""


async def test_threads_that_block_for_ever_do_not_hold_up_the_exit_of_the_process() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-W", "error", "-c", BLOCKED, cwd=ROOT)
    try:
        assert await asyncio.wait_for(process.wait(), SECONDS) == 0
    finally:
        if process.returncode is None:
            process.kill()
