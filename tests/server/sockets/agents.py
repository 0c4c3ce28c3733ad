"""Agents for the servers of this folder, which the last user message directs.

``agent`` adds to the offline assistant: ``hold`` (text, silence until ``release RUN``, text),
``count N TAG`` (N numbered pieces), ``bulk N`` (N pieces of 1000 characters), ``halves N`` (as
many, silence until ``release RUN``, as many more), ``tick N`` (N numbered pieces in N hundredths of a second),
``churn`` (text until ``release churn``), ``stall S`` (logs ``stalls`` and blocks
the event loop for S seconds), and the tool ``block`` (blocks its thread until ``release block``).
``blocking`` is a plain generator that blocks its thread for a minute. ``stubborn`` ignores its cancellation, and
``threaded`` waits for a thread of Python's own that goes on for a minute. ``leaving`` holds its run for the text
``hold``, and for any other awaits a task that raises ``SystemExit``, or ``KeyboardInterrupt`` for ``interrupt``.

Where ``EXECUTIONS`` names a file, each execution of ``agent`` adds a line with its run's id: what has run twice is
there twice, in whatever processes.
"""

import asyncio
import contextlib
import logging
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from ag_ui.core import RunAgentInput, UserMessage

from agui_container.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext
from agui_container.tools.builtin import builtin_tools
from agui_container.tools.function_tool import FunctionTool

LONGEST = 50.0
"""Seconds after which whatever holds gives up, so that a failing test leaves nothing behind."""

EXECUTIONS = "TESTS_EXECUTIONS"

PIECE = 1000

gates: defaultdict[str, threading.Event] = defaultdict(threading.Event)
wakers: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


def piece(index: int) -> str:
    return f"{index:0{PIECE - 1}d} "


def block() -> str:
    return "released" if gates["block"].wait(LONGEST) else "gave up"


assistant = Assistant(
    OfflineModel(),
    (*builtin_tools(), FunctionTool("block", "Blocks.", {"type": "object"}, block)),
    "Do as you are told.",
    max_steps=4,
)


def last_user_text(run_input: RunAgentInput) -> str:
    texts = [message.content for message in run_input.messages if isinstance(message, UserMessage)]
    return texts[-1] if texts and isinstance(texts[-1], str) else ""


def note(run_id: str) -> None:
    """Record in a file that this run is executed, in one write."""
    if path := os.environ.get(EXECUTIONS):
        with Path(path).open("ab", buffering=0) as file:
            file.write(f"{run_id}\n".encode())


async def wait_for_release(name: str) -> None:
    await asyncio.wait_for(wakers[name].wait(), LONGEST)


async def hold(run_id: str) -> AsyncIterator[Item]:
    yield "before "
    await wait_for_release(run_id)
    yield "after"


async def halves(run_id: str, times: int) -> AsyncIterator[Item]:
    for number in range(2 * times):
        if number == times:
            await wait_for_release(run_id)
        yield piece(number)


async def release(name: str) -> AsyncIterator[Item]:
    wakers[name].set()
    gates[name].set()
    yield "released"


async def count(rest: str) -> AsyncIterator[Item]:
    times, tag = rest.split()
    for number in range(int(times)):
        yield f"{tag}.{number} "
        await asyncio.sleep(0)


async def bulk(times: str) -> AsyncIterator[Item]:
    for number in range(int(times)):
        yield piece(number)


async def tick(times: str) -> AsyncIterator[Item]:
    for number in range(int(times)):
        yield f"{number} "
        await asyncio.sleep(0.01)


async def churn(_: str) -> AsyncIterator[Item]:
    while not wakers["churn"].is_set():
        yield "x"
        await asyncio.sleep(0.1)  # so seldom that a slow machine reads 50 of these streams as fast as they come


async def stall(seconds: str) -> AsyncIterator[Item]:
    yield "before "
    logging.getLogger("agent").info("stalls")
    time.sleep(float(seconds))  # noqa: ASYNC251 - the mistake that people make


COMMANDS: dict[str, Callable[[str], AsyncIterator[Item]]] = {
    "bulk": bulk,
    "churn": churn,
    "count": count,
    "release": release,
    "stall": stall,
    "tick": tick,
}


async def agent(run_input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    note(ctx.run_id)
    word, _, rest = last_user_text(run_input).partition(" ")
    if word == "hold":
        items = hold(ctx.run_id)
    elif word == "halves":
        items = halves(ctx.run_id, int(rest))
    elif word in COMMANDS:
        items = COMMANDS[word](rest)
    else:
        items = assistant.run(run_input, ctx)
    async for item in items:
        yield item


def blocking(_: RunAgentInput) -> Iterator[Item]:
    yield "before "
    time.sleep(60)
    yield "after"


async def stubborn(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "before "
    for _attempt in range(int(LONGEST)):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1)


async def threaded(_: RunAgentInput) -> AsyncIterator[Item]:
    yield "before "
    await asyncio.to_thread(time.sleep, LONGEST)


async def leaving(asked: RunAgentInput) -> AsyncIterator[Item]:
    yield "before "
    if last_user_text(asked) == "hold":
        await asyncio.Event().wait()
    await asyncio.create_task(leave(interrupted=last_user_text(asked) == "interrupt"))


async def leave(*, interrupted: bool) -> None:
    """Exit, as a tool does that is a program, or as one does that was interrupted."""
    if interrupted:
        raise KeyboardInterrupt
    sys.exit(7)
