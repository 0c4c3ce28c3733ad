"""What a turn of the agent asks of its caller: results of client tools, and answers to questions."""

import asyncio
import inspect
from collections.abc import Callable

from ag_ui.core import BaseEvent

from agui_client.client_tools import ClientToolResult
from agui_client.errors import Declined
from agui_client.interrupts import Answerer, Approver, approval_of
from agui_client.session_record import Outcome, SessionRecord
from agui_client.session_view import SessionView

OnEvent = Callable[[BaseEvent], object]
"""Called for each event. May be ``async``."""


class Turn:
    """One turn: ``session`` takes its results and answers, and ``record`` is what is known of it."""

    def __init__(self, session: SessionView, record: SessionRecord) -> None:
        self._session = session
        self._record = record
        self._calls: asyncio.Task[list[ClientToolResult]] | None = None

    def cancel(self) -> None:
        """Stop the client tools that run."""
        if self._calls is not None:
            self._calls.cancel()

    async def run_client_tools(self) -> None:
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

    async def ask(self, on_approval: Approver | None, on_interrupt: Answerer | None) -> None:
        """Ask for answers to the interrupts, one after the other."""
        for interrupt in self._session.interrupts:
            approval = approval_of(interrupt, self._record.conversation.call(interrupt.tool_call_id or ""))
            try:
                if approval is not None and on_approval is not None:
                    decision = await result_of(on_approval(approval))
                    if decision is not None:
                        self._session.answer(interrupt.id, decision)
                elif approval is None and on_interrupt is not None:
                    self._session.answer(interrupt.id, await result_of(on_interrupt(interrupt)))
            except Declined:
                self._session.abandon(interrupt.id)


async def result_of(value: object) -> object:
    """Return the result of a handler, which may be ``async``."""
    return await value if inspect.isawaitable(value) else value
