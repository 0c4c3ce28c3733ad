"""The runs of a thread as a client that waits sees them: those of other clients, and the one that it continues.

Rule: a thread belongs to all clients of its owner. The first client that answers continues the thread, over any
transport, and the other clients follow its run. An answer that comes after it begins no run and ends none, whatever
``AGUI_ON_BUSY`` says. A store that is away for a moment ends no waiting.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence

from ag_ui.core import AssistantMessage, Message, RunAgentInput, ToolMessage

from agui_container.engine.log.subscription import Subscription
from agui_container.engine.policy import ThreadCondition
from agui_container.engine.service import Service
from agui_container.ports import Caller
from agui_container.protocol.conversation.merge import unanswered_calls
from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.conversation.events import text_of

POLL_SECONDS = 1.0
"""Seconds between two checks for a run of another client."""

NO_RESULT = "Error: the conversation was continued without a result."
"""Text for a call that the thread no longer waits for, although nobody has given its result."""


class ThreadRuns:
    """Runs of one thread."""

    def __init__(self, service: Service, caller: Caller, thread_id: str) -> None:
        self._service = service
        self._caller = caller
        self._thread_id = thread_id

    async def resume(self, run_id: str, answers: RunAgentInput, size: int) -> Subscription | str:
        """Continue the run ``run_id`` with a client's answers. ``size`` is their size in bytes.

        Returns:
            The events of the new run, or the id of the next run if another client has continued the thread before.

        Raises:
            AppError: as ``Service.admit``.
        """
        try:
            return await self._service.admit(answers, self._caller, size, ThreadCondition(latest_run=run_id))
        except AppError as error:
            if error.code is not ErrorCode.THREAD_BUSY:
                raise
            next_run = await self.next_after(run_id)
            if next_run is None:
                raise
            return next_run

    async def attach_next(self, run_id: str, next_run: str) -> Subscription | None:
        """Return the events of ``next_run``, the run after ``run_id``, or None if the engine has refused it meanwhile.

        Raises:
            AppError: as ``Service.attach``.
        """
        try:
            return await self._service.attach(self._caller, self._thread_id, next_run, 0)
        except AppError as error:
            is_refused = error.code is ErrorCode.RUN_NOT_FOUND
            if not is_refused or await self.next_after(run_id) == next_run:
                raise
            return None

    async def next_after(self, run_id: str) -> str | None:
        """Return the id of the run after ``run_id``, or None if that is the latest run.

        If ``run_id`` is no longer listed, the next run is the latest one. None is also returned if the runs cannot be
        read now.
        """
        latest = await self.latest()
        if latest in {None, run_id}:
            return None
        runs = await self.ids()
        if not runs:
            return None
        later = runs[runs.index(run_id) + 1 :] if run_id in runs else []
        return later[0] if later else latest

    async def latest(self) -> str | None:
        """Return the id of the latest run, or None if there is none, or if it cannot be read now."""
        try:
            return str((await self._service.runs.find(self._caller, self._thread_id, None))["runId"])
        except AppError as error:
            if error.code not in {ErrorCode.RUN_NOT_FOUND, ErrorCode.STORE_UNAVAILABLE}:
                raise
            return None

    async def ids(self) -> list[str]:
        """Return the ids of the runs in order, as far as the list of the caller's runs has them.

        The latest run is always among them. The list is empty if the runs cannot be read now.
        """
        latest = await self.latest()
        if latest is None:
            return []
        try:
            views = await self._service.runs.list(self._caller)
        except AppError as error:
            if error.code is not ErrorCode.STORE_UNAVAILABLE:
                raise
            return []
        listed = [str(view["runId"]) for view in reversed(views) if view["threadId"] == self._thread_id]
        return listed if latest in listed else [*listed, latest]

    async def iterate(self) -> AsyncGenerator[str, None]:
        """Iterate the ids in order: the runs that are kept, and then new ones until the thread is deleted."""
        known: set[str] = set()
        while True:
            latest = await self.latest()
            runs = [] if latest in known else await self.ids()
            for run_id in runs:
                if run_id not in known:
                    yield run_id
            if runs:
                known = set(runs)
            elif latest is not None or await self.has_thread():
                await pause()
            else:
                return

    async def has_thread(self) -> bool:
        """Return True if the thread is stored, or if the store cannot be read now."""
        try:
            await self._service.threads.record(self._caller, self._thread_id)
        except AppError as error:
            if error.code not in {ErrorCode.THREAD_NOT_FOUND, ErrorCode.STORE_UNAVAILABLE}:
                raise
            return error.code is ErrorCode.STORE_UNAVAILABLE
        return True


async def pause() -> None:
    """Wait until the store may be read again."""
    await asyncio.sleep(POLL_SECONDS)


def closed_calls(messages: Sequence[Message], call_ids: Collection[str]) -> dict[str, str]:
    """Return those of some calls of the client that a thread no longer waits for, with their results as texts."""
    results = {each.tool_call_id: text_of(each.content) for each in messages if isinstance(each, ToolMessage)}
    waiting = set(unanswered_calls(messages))
    return {call_id: results.get(call_id, NO_RESULT) for call_id in call_ids if call_id not in waiting}


def has_call(message: Message, call_id: str) -> bool:
    """True if a message of the assistant makes this call."""
    calls = message.tool_calls or () if isinstance(message, AssistantMessage) else ()
    return any(call.id == call_id for call in calls)
