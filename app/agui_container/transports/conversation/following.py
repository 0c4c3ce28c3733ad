"""The runs of a thread as a client that waits sees them: those of other clients, and the one that it continues.

Rule: a thread belongs to all clients of its owner. The first client that answers continues the thread, over any
transport, and the other clients follow its run. An answer that comes after it begins no run and ends none, whatever
``AGUI_ON_BUSY`` says. A store that is away for a moment ends no waiting.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence

from ag_ui.core import RunAgentInput, ToolMessage

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.policy import ThreadCondition
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.ports.records import StoredMessage
from agui_container.protocol.conversation.merge import MESSAGE, unanswered_calls
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.conversation.events import text_of

POLL_SECONDS = 1.0
"""Seconds between two checks for a run of another client."""

NO_RESULT = "Error: the conversation was continued without a result."
"""Text for a call that the thread no longer waits for, although nobody has given its result."""


async def continue_run(
    service: Service, caller: Caller, run_id: str, answers: RunAgentInput, size: int
) -> Subscription | str:
    """Continue a run with a client's answers. ``size`` is their size in bytes.

    Returns:
        The events of the new run, or the id of the next run if another client has continued the thread before.

    Raises:
        AppError: as ``Service.admit``.
    """
    try:
        return await service.admit(answers, caller, size, ThreadCondition(latest_run=run_id))
    except AppError as error:
        if error.code is not ErrorCode.THREAD_BUSY:
            raise
        next_run = await find_next_run(service, caller, answers.thread_id, run_id)
        if next_run is None:
            raise
        return next_run


async def attach_next(
    service: Service, caller: Caller, thread_id: str, run_id: str, next_run: str
) -> Subscription | None:
    """Return the events of ``next_run``, the run after ``run_id``, or None if the engine has refused it meanwhile.

    Raises:
        AppError: as ``Service.attach``.
    """
    try:
        return await service.attach(caller, thread_id, next_run, 0)
    except AppError as error:
        is_refused = error.code is ErrorCode.RUN_NOT_FOUND
        if not is_refused or await find_next_run(service, caller, thread_id, run_id) == next_run:
            raise
        return None


async def find_next_run(service: Service, caller: Caller, thread_id: str, run_id: str) -> str | None:
    """Return the id of the run after ``run_id``, or None if that is the thread's latest run.

    If ``run_id`` is no longer listed, the next run is the latest one. None is also returned if the runs cannot be read
    now.
    """
    latest = await find_latest_run(service, caller, thread_id)
    if latest in {None, run_id}:
        return None
    runs = await list_runs(service, caller, thread_id)
    if not runs:
        return None
    later = runs[runs.index(run_id) + 1 :] if run_id in runs else []
    return later[0] if later else latest


def closed_calls(messages: Sequence[StoredMessage], call_ids: Collection[str]) -> dict[str, str]:
    """Return those of some calls of the client that a thread no longer waits for, with their results as texts."""
    parsed = [MESSAGE.validate_json(message.data) for message in messages]
    results = {each.tool_call_id: text_of(each.content) for each in parsed if isinstance(each, ToolMessage)}
    waiting = set(unanswered_calls(parsed))
    return {call_id: results.get(call_id, NO_RESULT) for call_id in call_ids if call_id not in waiting}


async def iterate_runs(service: Service, caller: Caller, thread_id: str) -> AsyncGenerator[str, None]:
    """Iterate the ids of a thread's runs, in order: the runs that are kept, and then new ones until it is deleted."""
    known: set[str] = set()
    while True:
        latest = await find_latest_run(service, caller, thread_id)
        runs = [] if latest in known else await list_runs(service, caller, thread_id)
        for run_id in runs:
            if run_id not in known:
                yield run_id
        if runs:
            known = set(runs)
        elif latest is not None or await has_thread(service, caller, thread_id):
            await pause()
        else:
            return


async def pause() -> None:
    """Wait until the store may be read again."""
    await asyncio.sleep(POLL_SECONDS)


async def has_thread(service: Service, caller: Caller, thread_id: str) -> bool:
    """True if a thread is stored, or if the store cannot be read now."""
    try:
        await service.threads.record(caller, thread_id)
    except AppError as error:
        if error.code not in {ErrorCode.THREAD_NOT_FOUND, ErrorCode.STORE_UNAVAILABLE}:
            raise
        return error.code is ErrorCode.STORE_UNAVAILABLE
    return True


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
    try:
        views = await service.runs.list(caller)
    except AppError as error:
        if error.code is not ErrorCode.STORE_UNAVAILABLE:
            raise
        return []
    listed = [str(view["runId"]) for view in reversed(views) if view["threadId"] == thread_id]
    return listed if latest in listed else [*listed, latest]
