"""Wait for the continuation of a thread: an answer of this client, or a run that another client has begun.

Rule: a thread belongs to all clients of its owner. The first client that answers continues the thread, over any
transport, and the other clients follow its run.
"""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import ThreadStatus
from agui_container.protocol.commands import ThreadsGet
from agui_container.protocol.errors import AppError, ErrorCode

POLL_SECONDS = 1.0
"""Seconds between two checks for a run of another client."""

T = TypeVar("T")


async def wait_for_newer_run(service: Service, caller: Caller, thread_id: str, run_id: str) -> str:
    """Wait until the latest run of a thread is not ``run_id``, and return the id of that run."""
    while True:
        await asyncio.sleep(POLL_SECONDS)
        newer = await find_newer_run(service, caller, thread_id, run_id)
        if newer is not None:
            return newer


async def wait_for_continuation(service: Service, caller: Caller, thread_id: str, run_id: str) -> str | None:
    """Wait for the run after ``run_id``, and return its id. Returns None if no call of the thread is open.

    The thread tells whether a call is open. The last event of a run names only the calls that this run has made.
    """
    while True:
        is_open = await has_open_calls(service, caller, thread_id)  # before the runs, so that no run is missed
        newer = await find_newer_run(service, caller, thread_id, run_id)
        if newer is not None or not is_open:
            return newer
        await asyncio.sleep(POLL_SECONDS)


async def has_open_calls(service: Service, caller: Caller, thread_id: str) -> bool:
    """True if a run of the thread is active, or a call waits for an answer. False for a thread that is deleted."""
    try:
        thread = await service.threads.answer(caller, ThreadsGet(thread_id=thread_id, messages=False))
    except AppError as error:
        if error.code not in {ErrorCode.THREAD_NOT_FOUND, ErrorCode.STORE_UNAVAILABLE}:
            raise
        return error.code is ErrorCode.STORE_UNAVAILABLE
    return bool(thread["waiting"]) or thread["status"] in {ThreadStatus.AGENT_TURN, ThreadStatus.CLIENT_TOOL_TURN}


async def find_newer_run(service: Service, caller: Caller, thread_id: str, run_id: str) -> str | None:
    """Return the id of the latest run of a thread, or None if that is ``run_id``, or cannot be read now."""
    try:
        latest = await service.runs.find(caller, thread_id, None)
    except AppError as error:
        if error.code not in {ErrorCode.RUN_NOT_FOUND, ErrorCode.STORE_UNAVAILABLE}:
            raise
        return None
    return None if latest["runId"] == run_id else str(latest["runId"])


async def first_of(work: Coroutine[object, object, T], other: Coroutine[object, object, str]) -> T | str:
    """Return the result, or raise the exception, of the coroutine that ends first. The other one is cancelled."""
    tasks = asyncio.ensure_future(work), asyncio.ensure_future(other)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first = next(task for task in tasks if task.done())
        return first.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
