"""An agent that waits until its test lets it end."""

import asyncio
from collections.abc import AsyncIterator, Callable

from ag_ui.core import CustomEvent, RunAgentInput

from agui_container.ports import Item


def hi(_: RunAgentInput) -> Item:
    """The same word for each run."""
    return "hi"


def run_id(asked: RunAgentInput) -> Item:
    """The run's id as text."""
    return asked.run_id


def run_id_event(asked: RunAgentInput) -> Item:
    """The run's id as one event that no other belongs to."""
    return CustomEvent(name="n", value=asked.run_id)


class WaitingAgent:
    """An agent that says something, waits until it may end, and says the rest.

    Args:
        first: what it says to a request.
        rest: what it says once it may end; empty for nothing.

    Attributes:
        begun: ids of its runs, in the order in which they began.
        may_end: set by the test.
        cut_off: set when a run was cancelled while it waited.
    """

    def __init__(self, first: Callable[[RunAgentInput], Item] = hi, rest: str = "") -> None:
        self.begun: list[str] = []
        self.may_end = asyncio.Event()
        self.cut_off = asyncio.Event()
        self._first, self._rest = first, rest

    async def run(self, asked: RunAgentInput) -> AsyncIterator[Item]:
        self.begun.append(asked.run_id)
        yield self._first(asked)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cut_off.set()
            raise
        if self._rest:
            yield self._rest
