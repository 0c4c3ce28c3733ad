"""Waiting on a thread: for a client's answer, or for a run that somebody else has begun there.

Rule: a thread belongs to all of its owner's clients. Whoever answers first continues it, over any transport, and the
others follow.
"""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.protocol.errors import AppError, ErrorCode

POLL_SECONDS = 1.0
"""Between two looks at whether another client has continued a thread."""

T = TypeVar("T")


async def newer_run(service: Service, caller: Caller, thread_id: str, run_id: str) -> str:
    """Wait until the thread has another run than ``run_id``; the id of that run."""
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


async def first_of(wanted: Coroutine[object, object, T], other: Coroutine[object, object, str]) -> T | str:
    """The result of whichever ends first; the other one is cancelled. Raises what the first one raises."""
    tasks = asyncio.ensure_future(wanted), asyncio.ensure_future(other)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first = next(task for task in tasks if task.done())
        return first.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
