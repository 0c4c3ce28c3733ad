"""Things that live as long as their thread does: one for each, in one run at a time, and not too many.

Rule: whoever uses a thread's thing holds it alone. The engine frees a thread as soon as its run is over for its
readers; an agent that is still being unwound then is waited for. Only what nobody uses is dropped, the longest unused
first.

A Strands ``Agent``, through ``ag-ui-strands``.

Rule: one adapter for each thread. The package's own keeps an agent for every thread it has ever seen and never lets go
of one; with an adapter each, a thread's agent is dropped together with everything the package remembers of it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from ag_ui.core import RunAgentInput
from ag_ui_strands import StrandsAgent
from msgspec import Struct, field

from agui_container.agents.frameworks.translation import awaits_client, check_events, own_input, thread_id_for
from agui_container.ports import Agent, Item, RunContext
from agui_container.runtime.aclosing import maybe_aclosing

T = TypeVar("T")

THREADS = 1000
"""Threads whose agents are kept. One that comes back later starts anew, from the messages that the client sends."""


class _Entry(Struct, Generic[T]):
    value: T
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class PerThread(Generic[T]):
    """Makes with ``make`` what a thread does not have yet."""

    def __init__(self, make: Callable[[], T], room: int = THREADS) -> None:
        self._make = make
        self._room = room
        self._kept: OrderedDict[str, _Entry[T]] = OrderedDict()

    @asynccontextmanager
    async def acquire(self, thread: str) -> AsyncGenerator[T, None]:
        """The thread's own, once nobody else has it."""
        kept = self._kept.get(thread) or _Entry(self._make())
        self._kept[thread] = kept
        self._kept.move_to_end(thread)
        kept.users += 1
        try:
            async with kept.alone:
                yield kept.value
        finally:
            kept.users -= 1
            self._evict()

    def drop(self, thread: str) -> None:
        """Forget the thread's own; whoever has it keeps it until it is done."""
        self._kept.pop(thread, None)

    def _evict(self) -> None:
        surplus = len(self._kept) - self._room
        if surplus > 0:
            unused = [thread for thread, kept in self._kept.items() if not kept.users]
            for thread in unused[:surplus]:
                del self._kept[thread]


def wrap(source: object) -> Agent:
    """Serve a Strands ``Agent``, or a user's ``StrandsAgent`` with its own settings."""
    if isinstance(source, StrandsAgent):
        return StrandsThreads(PerThread(lambda: source))
    make_adapter(source)  # what it cannot take is said at the start
    return StrandsThreads(PerThread(lambda: make_adapter(source)))


def make_adapter(agent: object) -> StrandsAgent:
    """An adapter that has seen no thread yet."""
    return StrandsAgent(agent=agent, name=str(getattr(agent, "name", "agent")))


class StrandsThreads(Struct, frozen=True):
    """Implements ``ports.Agent`` and ``ports.Rememberer``.

    Hooks and tools find the run's context in ``invocation_state["ctx"]``.
    """

    adapters: PerThread[StrandsAgent]

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Run the thread's agent."""
        if awaits_client(input):
            return
        request = own_input(input, ctx)
        async with self.adapters.acquire(request.thread_id) as adapter:
            stream = check_events(adapter.run(request, invocation_state={"ctx": ctx}), ctx)
            async with maybe_aclosing(stream) as events:
                async for event in events:
                    yield event

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        """Drop the thread's agent. A ``StrandsAgent`` of the user's own keeps it."""
        self.adapters.drop(thread_id_for(owner, thread_id))
