"""The runs of a thread as a client that waits sees them: those of other clients, and the one that it continues.

Rule: a thread belongs to all clients of its owner. The first client that answers continues the thread, over any
transport, and the other clients follow its run. An answer that comes after it begins no run and ends none, whatever
``AGUI_ON_BUSY`` says. A store that is away for a moment ends no waiting.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence

from ag_ui.core import Interrupt, Message, RunAgentInput, ToolMessage, UserMessage

from agui_container.engine.engine import Engine
from agui_container.engine.views import interrupt_view
from agui_container.ports import Caller, ClientOffer
from agui_container.protocol.errors import AppError, ErrorCode, suppress_errors
from agui_container.protocols.conversation.approvals import approval_request
from agui_container.protocols.conversation.pending import ClientToolCall, OpenCall
from agui_container.run.policy import ThreadCondition
from agui_container.run.subscription import Subscription
from agui_core import turns
from agui_core.content import text_of

POLL_SECONDS = 1.0
"""Seconds between two checks for a run of another client."""

NO_RESULT = "Error: the conversation was continued without a result."
"""Text for a call that the thread no longer waits for, although nobody has given its result."""


class ThreadRuns:
    def __init__(self, service: Engine, caller: Caller, thread_id: str) -> None:
        self._service = service
        self._caller = caller
        self._thread_id = thread_id

    async def resume(self, run_id: str, answers: RunAgentInput, size: int, offer: ClientOffer) -> Subscription | str:
        """Return the new run, or the id of the next one if another client has continued the thread before."""
        try:
            condition = ThreadCondition(latest_run=run_id)
            return await self._service.admit(answers, self._caller, size, condition, offer)
        except AppError as error:
            if error.code is not ErrorCode.THREAD_BUSY:
                raise
            next_run = await self.next_after(run_id)
            if next_run is None:
                raise
            return next_run

    async def attach_next(self, run_id: str, next_run: str) -> Subscription | None:
        """Return the events of ``next_run``, or None if the engine has refused it meanwhile."""
        try:
            return await self._service.attach(self._caller, self._thread_id, next_run, 0)
        except AppError as error:
            is_refused = error.code is ErrorCode.RUN_NOT_FOUND
            if not is_refused or await self.next_after(run_id) == next_run:
                raise
            return None

    async def next_after(self, run_id: str) -> str | None:
        """Return None for the latest run, or if runs cannot be read. After an unlisted run comes the latest one."""
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
        with suppress_errors(ErrorCode.RUN_NOT_FOUND, ErrorCode.STORE_UNAVAILABLE):
            return str((await self._service.runs.find(self._caller, self._thread_id, None))["runId"])
        return None

    async def ids(self) -> list[str]:
        """Return listed ids in order and always the latest, or none if the runs cannot be read now."""
        latest = await self.latest()
        if latest is None:
            return []
        with suppress_errors(ErrorCode.STORE_UNAVAILABLE):
            views = await self._service.runs.list(self._caller)
            listed = [str(view["runId"]) for view in reversed(views) if view["threadId"] == self._thread_id]
            return listed if latest in listed else [*listed, latest]
        return []

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
        with suppress_errors(ErrorCode.THREAD_NOT_FOUND):
            with suppress_errors(ErrorCode.STORE_UNAVAILABLE):
                await self._service.threads.record(self._caller, self._thread_id)
            return True
        return False


async def open_calls(service: Engine, caller: Caller, thread_id: str) -> Mapping[str, OpenCall]:
    """Return the calls and questions of a thread that wait for a client, by the id that clients answer."""
    questions: Sequence[Interrupt] = ()
    messages: Sequence[Message] = ()
    with suppress_errors(ErrorCode.THREAD_NOT_FOUND):
        questions = await service.threads.waiting(caller, thread_id)
        messages = await service.threads.messages_since(caller, thread_id, is_users)
    approvals: list[OpenCall] = [approval_request(interrupt_view(question)) for question in questions]
    tools: list[OpenCall] = [
        ClientToolCall(call.id, call.function.name, None, [call.function.arguments])
        for call in turns.open_calls(messages)
    ]
    return {call.call_id: call for call in [*tools, *approvals]}


def is_users(message: Message) -> bool:
    return isinstance(message, UserMessage)


async def pause() -> None:
    await asyncio.sleep(POLL_SECONDS)


def closed_calls(messages: Sequence[Message], call_ids: Collection[str]) -> dict[str, str]:
    results = {each.tool_call_id: text_of(each.content) for each in messages if isinstance(each, ToolMessage)}
    waiting = {call.id for call in turns.open_calls(messages)}
    return {call_id: results.get(call_id, NO_RESULT) for call_id in call_ids if call_id not in waiting}


def has_call(message: Message, call_id: str) -> bool:
    return any(call.id == call_id for call in turns.calls_of(message))
