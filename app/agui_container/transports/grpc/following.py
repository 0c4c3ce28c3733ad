"""Wait for the continuation of a thread: an answer of this client, or a run that another client has begun.

Rule: a thread belongs to all clients of its owner. The first client that answers continues the thread, over any
transport, and the other clients follow its run.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import TypeVar

from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import ThreadStatus
from agui_container.protocol.errors import AppError, ErrorCode

POLL_SECONDS = 1.0
"""Seconds between two checks for a run of another client."""

T = TypeVar("T")


async def wait_for_newer_run(service: Service, caller: Caller, thread_id: str, run_id: str) -> str:
    """Wait until the latest run of a thread is not ``run_id``, and return the id of that run."""
    while True:
        await asyncio.sleep(POLL_SECONDS)
        latest = await find_latest_run(service, caller, thread_id)
        if latest not in (None, run_id):
            return latest


async def iterate_runs(service: Service, caller: Caller, thread_id: str) -> AsyncGenerator[str, None]:
    """Iterate the ids of a thread's runs, in order: the runs that are kept, and then new ones while a call is open.

    The thread's status shows whether a call is open. The last event of a run names only the calls
    that this run has made.
    """
    known: set[str] = set()
    while True:
        is_open = await has_open_calls(service, caller, thread_id)  # before the runs, so that no run is missed
        new = [run_id for run_id in await list_runs(service, caller, thread_id) if run_id not in known]
        for run_id in new:
            yield run_id
        known.update(new)
        if not new and not is_open:
            return
        if not new:
            await asyncio.sleep(POLL_SECONDS)


async def has_open_calls(service: Service, caller: Caller, thread_id: str) -> bool:
    """True if a run of the thread is active, or a call waits for an answer. False for a thread that is deleted."""
    try:
        thread = await service.threads.record(caller, thread_id)
        is_waiting = bool(await service.threads.waiting(caller, thread_id))
    except AppError as error:
        if error.code not in {ErrorCode.THREAD_NOT_FOUND, ErrorCode.STORE_UNAVAILABLE}:
            raise
        return error.code is ErrorCode.STORE_UNAVAILABLE
    return is_waiting or thread.status in {ThreadStatus.AGENT_TURN, ThreadStatus.CLIENT_TOOL_TURN}


async def find_latest_run(service: Service, caller: Caller, thread_id: str) -> str | None:
    """Return the id of a thread's latest run, or None if there is none, or if it cannot be read now."""
    try:
        return str((await service.runs.find(caller, thread_id, None))["runId"])
    except AppError as error:
        if error.code not in {ErrorCode.RUN_NOT_FOUND, ErrorCode.STORE_UNAVAILABLE}:
            raise
        return None


async def list_runs(service: Service, caller: Caller, thread_id: str) -> list[str]:
    """Return the ids of a thread's runs in order, as far as the list of the caller's runs has them.

    The latest run is always among them. The list is empty if the runs cannot be read now.
    """
    latest = await find_latest_run(service, caller, thread_id)
    if latest is None:
        return []
    listed = [str(view["runId"]) for view in await service.runs.list(caller) if view["threadId"] == thread_id]
    return [*reversed(listed)] if latest in listed else [*reversed(listed), latest]


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
