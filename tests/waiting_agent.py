"""An agent that waits until its test lets it end."""

import asyncio
from collections.abc import AsyncIterator, Callable

from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item


def hi(_: RunAgentInput) -> Item:
    return "hi"


def run_id(run_input: RunAgentInput) -> Item:
    return run_input.run_id


def run_id_event(run_input: RunAgentInput) -> Item:
    return CustomEvent(name="n", value=run_input.run_id)


class WaitingAgent:
    """An agent that yields an item, waits until it may end, and yields a text.

    Args:
        first: returns the first item of a run.
        rest: text after the wait; empty for none.

    Attributes:
        may_end: set by the test.
        cut_off: set when a run was cancelled while it waited.
    """

    def __init__(self, first: Callable[[RunAgentInput], Item] = hi, rest: str = "") -> None:
        self.started_run_ids: list[str] = []
        self.may_end = asyncio.Event()
        self.cut_off = asyncio.Event()
        self._first, self._rest = first, rest

    async def run(self, run_input: RunAgentInput) -> AsyncIterator[Item]:
        self.started_run_ids.append(run_input.run_id)
        yield self._first(run_input)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cut_off.set()
            raise
        if self._rest:
            yield self._rest
