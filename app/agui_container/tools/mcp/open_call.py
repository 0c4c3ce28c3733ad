"""A call that is open at a server, with its progress and the questions that the server asks within it.

Before protocol version 2026-07-28 a server asks within the call. The call then stays open for ``ANSWER_SECONDS``, also
after the end of its run, and only the process that holds it can pass the answer on.
"""

import asyncio
import math
import uuid
from collections.abc import Awaitable, Callable

from ag_ui.core import CustomEvent
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, InputRequiredResult

from agui_container.ports import RunContext
from agui_container.ports.notices import TOOLS_PROGRESS

ANSWER_SECONDS = 600.0
"""Seconds that a call stays open for the answer to a question that its server has asked within it."""

PROGRESS_SECONDS = 0.25
"""Seconds between two progress events of one call."""

CallAnswer = CallToolResult | InputRequiredResult


class OpenCall:
    """A call of a tool.

    Attributes:
        ctx: the context of the run that waits for the call, or has waited for it last.
        id: names the call in the state of its suspension.
        task: makes the call. It fails with ``TimeoutError`` if nothing comes from the server in time.
        question: a question of the server to a person, once there is one.
    """

    def __init__(self, ctx: RunContext, timeout: float, send: Callable[["OpenCall"], Awaitable[CallAnswer]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._limit = asyncio.timeout(timeout)
        self._one_question = asyncio.Lock()
        self._answer: asyncio.Future[ElicitResult] = self._loop.create_future()
        self._reported_at = -math.inf
        self.ctx = ctx
        self.id = str(uuid.uuid4())
        self.question: asyncio.Future[ElicitRequestParams] = self._loop.create_future()
        self.task = self._loop.create_task(self._run(send))

    async def settled(self) -> None:
        """Wait until the call has ended or its server asks. The call is cancelled with the waiting task."""
        try:
            await asyncio.wait((self.task, self.question), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.task.cancel()
            await self.ended()
            raise

    async def ended(self) -> None:
        await asyncio.wait((self.task,))

    async def ask(self, params: ElicitRequestParams) -> ElicitResult:
        """Return the answer of a person, or a cancellation if the call ends before."""
        async with self._one_question:
            self._extend(ANSWER_SECONDS)
            self.question.set_result(params)
            await asyncio.wait((self.task, self._answer), return_when=asyncio.FIRST_COMPLETED)
            answer, self._answer = self._answer, self._loop.create_future()
            self.restart_limit()
            return answer.result() if answer.done() else ElicitResult(action="cancel")

    def answer(self, result: ElicitResult) -> None:
        self.question = self._loop.create_future()
        self._answer.set_result(result)

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Report the progress to the client, unless another report was sent just before."""
        self.restart_limit()
        now = self._loop.time()
        if now - self._reported_at < PROGRESS_SECONDS:
            return
        self._reported_at = now
        fields = {"progress": progress, "total": total, "message": message}
        value = {"toolCallId": self.ctx.tool_call_id, **{k: v for k, v in fields.items() if v is not None}}
        self.ctx.emit(CustomEvent(name=TOOLS_PROGRESS, value=value))

    async def _run(self, send: Callable[["OpenCall"], Awaitable[CallAnswer]]) -> CallAnswer:
        async with self._limit:
            return await send(self)

    @property
    def run(self) -> tuple[str, str, str]:
        """Owner and ids of the run that waits for the call."""
        return self.ctx.caller.owner, self.ctx.thread_id, self.ctx.run_id

    def restart_limit(self) -> None:
        self._extend(self._timeout)

    def _extend(self, seconds: float) -> None:
        if not self.task.done() and not self._limit.expired():
            self._limit.reschedule(self._loop.time() + seconds)
