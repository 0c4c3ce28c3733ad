"""Wait for the continuation of a thread: an answer of this client, or a run that another client has begun.

Rule: a thread belongs to all clients of its owner. The first client that answers continues the thread, over any
transport, and the other clients follow its run.
"""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.protocol.errors import AppError, ErrorCode

POLL_SECONDS = 1.0
"""Seconds between two checks for a run of another client."""

T = TypeVar("T")


async def wait_for_newer_run(service: Service, caller: Caller, thread_id: str, run_id: str) -> str:
    """Wait until the latest run of a thread is not ``run_id``, and return the id of that run."""
    while True:
        await asyncio.sleep(POLL_SECONDS)
        try:
            latest = await service.runs.find(caller, thread_id, None)
        except AppError as error:
            if error.code not in {ErrorCode.RUN_NOT_FOUND, ErrorCode.STORE_UNAVAILABLE}:
                raise
            continue
        if latest["runId"] != run_id:
            return str(latest["runId"])


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
