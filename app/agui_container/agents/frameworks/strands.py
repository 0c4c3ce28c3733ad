"""Adapter for a Strands ``Agent``, through ``ag-ui-strands``.

Rules:
- Each thread has its own ``StrandsAgent``. The package's adapter never drops the agent of a thread. With one adapter
  per thread, a thread's agent is dropped together with everything that the package stores for it.
- One run at a time uses a thread's adapter. The engine frees a thread when the readers have seen the end of its run, so
  the next run may have to wait until the agent of the previous run is closed.
- The number of adapters is bounded. Only unused ones are evicted, the least recently used first.
"""

from collections.abc import AsyncGenerator

from ag_ui.core import RunAgentInput
from ag_ui_strands import StrandsAgent
from msgspec import Struct

from agui_container.agents.frameworks.per_thread import PerThread
from agui_container.agents.frameworks.translation import awaits_client, check_events, own_input, thread_id_for
from agui_container.ports import Agent, Item, RunContext, RunInterrupted
from agui_container.runtime.aclosing import maybe_aclosing

INTERRUPTED = "agui_interrupted"
"""Key in ``invocation_state`` of the list to which the server's tools append their interrupts."""


def wrap(source: object) -> Agent:
    """Adapt a Strands ``Agent``, or a user's ``StrandsAgent`` with its own settings."""
    if isinstance(source, StrandsAgent):
        return StrandsThreads(PerThread(lambda: source))
    make_adapter(source)  # An unsupported agent raises at startup.
    return StrandsThreads(PerThread(lambda: make_adapter(source)))


def make_adapter(agent: object) -> StrandsAgent:
    """Create an adapter without threads."""
    return StrandsAgent(agent=agent, name=str(getattr(agent, "name", "agent")))


class StrandsThreads(Struct, frozen=True):
    """Implements ``ports.Agent`` and ``ports.ThreadCleanup``.

    Hooks and tools find the run's context in ``invocation_state["ctx"]``.
    """

    adapters: PerThread[StrandsAgent]

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Run the thread's agent. Yield nothing until the client has sent all results of the last turn."""
        if awaits_client(input):
            return
        request = own_input(input, ctx)
        interrupted: list[RunInterrupted] = []
        state = {"ctx": ctx, INTERRUPTED: interrupted}
        async with self.adapters.acquire(request.thread_id) as adapter:
            stream = check_events(adapter.run(request, invocation_state=state), ctx)
            async with maybe_aclosing(stream) as events:
                async for event in events:
                    if not interrupted:  # the result of the call that waits, and the end of the agent
                        yield event
        if interrupted:
            # The agent's messages end with a call without a result. A new one begins with the client's messages.
            self.adapters.drop(request.thread_id)
            raise interrupted[-1]

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        """Drop the thread's agent. A user's own ``StrandsAgent`` cannot drop it."""
        self.adapters.drop(thread_id_for(owner, thread_id))
