"""A Strands ``Agent``, through ``ag-ui-strands``.

Rule: one adapter for each thread. The package's own keeps an agent for every thread it has ever seen and never lets go
of one; with an adapter each, a thread's agent is dropped together with everything the package remembers of it.
"""

from collections.abc import AsyncGenerator

from ag_ui.core import RunAgentInput
from ag_ui_strands import StrandsAgent
from msgspec import Struct

from app.agents.frameworks.per_thread import PerThread
from app.agents.frameworks.stream import awaits_client, checked, own, thread_of
from app.closing import closing
from app.ports import Agent, Item, RunContext


def wrap(source: object) -> Agent:
    """Serve a Strands ``Agent``, or a user's ``StrandsAgent`` with its own settings."""
    if isinstance(source, StrandsAgent):
        return ThreadsOfStrands(PerThread(lambda: source))
    make_adapter(source)  # what it cannot take is said at the start
    return ThreadsOfStrands(PerThread(lambda: make_adapter(source)))


def make_adapter(agent: object) -> StrandsAgent:
    """An adapter that has seen no thread yet."""
    return StrandsAgent(agent=agent, name=str(getattr(agent, "name", "agent")))


class ThreadsOfStrands(Struct, frozen=True):
    """Implements ``ports.Agent`` and ``ports.Rememberer``.

    Hooks and tools find the run's context in ``invocation_state["ctx"]``.
    """

    adapters: PerThread[StrandsAgent]

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Run the thread's agent."""
        if awaits_client(input):
            return
        request = own(input, ctx)
        async with self.adapters.of(request.thread_id) as adapter:
            stream = checked(adapter.run(request, invocation_state={"ctx": ctx}), ctx)
            async with closing(stream) as events:
                async for event in events:
                    yield event

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        """Drop the thread's agent. A ``StrandsAgent`` of the user's own keeps it."""
        self.adapters.drop(thread_of(owner, thread_id))
