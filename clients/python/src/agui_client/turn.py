"""One turn of the agent: its runs, the client tools that they call, and the questions that they ask."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from ag_ui.core import BaseEvent

from agui_client.client_tools import ClientToolResult
from agui_client.errors import Declined
from agui_client.interrupts import Answerer, Approver, approval_of
from agui_client.session_record import Outcome, SessionRecord, SessionStatus
from agui_client.session_view import SessionView

OnEvent = Callable[[BaseEvent], object]
"""Called for each event. May be ``async``."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """The caller's handlers, each plain or ``async``, or None."""

    on_event: OnEvent | None
    on_approval: Approver | None
    on_interrupt: Answerer | None


class Turn:
    """Drives a session until it is the user's turn.

    Args:
        session: takes results and answers.
        record: what is known of it.
        events: yields the events of its next run.
        handlers: of the caller.
    """

    def __init__(
        self,
        session: SessionView,
        record: SessionRecord,
        events: Callable[[], AsyncGenerator[BaseEvent, None]],
        handlers: Handlers,
    ) -> None:
        self._session = session
        self._record = record
        self._events = events
        self._handlers = handlers
        self._calls: asyncio.Task[list[ClientToolResult]] | None = None

    async def run(self) -> None:
        """Read runs as long as there are results and answers to send."""
        while True:
            await self._read()
            if self._record.status is SessionStatus.CLIENT_TOOL_TURN:
                await self._run_client_tools()
            else:
                await self._ask()
            if not self._record.draft.is_due:
                return

    def cancel(self) -> None:
        """Stop the client tools that run."""
        if self._calls is not None:
            self._calls.cancel()

    async def _read(self) -> None:
        async with aclosing(self._events()) as events:
            async for event in events:
                if self._handlers.on_event is not None:
                    await _result(self._handlers.on_event(event))

    async def _run_client_tools(self) -> None:
        """Run the calls that wait, unless the turn is cancelled meanwhile."""
        self._calls = asyncio.create_task(self._record.tools.dispatch(self._record.pending_calls))
        try:
            self._session.submit_client_tool_results(await self._calls)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._record.end(Outcome.CANCELLED)  # by ``cancel``
        finally:
            self._calls = None

    async def _ask(self) -> None:
        """Ask for answers to the interrupts, one after the other."""
        for interrupt in self._session.interrupts:
            call = self._record.conversation.call(interrupt.tool_call_id or "")
            approval = approval_of(interrupt, call)
            try:
                if approval is not None and self._handlers.on_approval is not None:
                    decision = await _result(self._handlers.on_approval(approval))
                    if decision is not None:
                        self._session.answer(interrupt.id, decision)
                elif approval is None and self._handlers.on_interrupt is not None:
                    self._session.answer(interrupt.id, await _result(self._handlers.on_interrupt(interrupt)))
            except Declined:
                self._session.abandon(interrupt.id)


async def _result(value: object) -> object:
    """The result of a handler, which may be ``async``."""
    return await value if inspect.isawaitable(value) else value
