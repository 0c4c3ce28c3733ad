"""A Pydantic AI ``Agent``, through the AG-UI adapter in ``pydantic-ai-slim[ag-ui]``.

Rule: an adapter for every run, as the package has it; the agent itself keeps nothing. Its dependencies are made here,
so an agent is served only if their making is known.
"""

import inspect
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from ag_ui.core import RunAgentInput
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.ui import StateDeps
from pydantic_ai.ui.ag_ui import AGUIAdapter

from app.agents.callables import AgentLoadError
from app.agents.frameworks.stream import checked
from app.closing import closing
from app.ports import Agent, Item, RunContext


def wrap(source: object, name: str) -> Agent:
    """Serve a Pydantic AI agent.

    Raises:
        AgentLoadError: it wants dependencies that only its author can make.
    """
    if not isinstance(source, AbstractAgent):
        raise AgentLoadError(f"'{name}' is not an agent of the installed Pydantic AI.")
    return PydanticAgent(source, _dependencies(source.deps_type, name))


@dataclass(frozen=True, slots=True)
class PydanticAgent:
    """Implements ``ports.Agent``. ``dependencies`` makes the ``deps`` of one run."""

    agent: AbstractAgent[Any, Any]
    dependencies: Callable[[RunContext], object]

    async def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncGenerator[Item, None]:
        """Run the agent."""
        adapter = AGUIAdapter(self.agent, input, include_usage=True)
        async with (
            closing(adapter.run_stream_native(deps=self.dependencies(ctx))) as native,
            closing(checked(adapter.transform_stream(native), ctx)) as events,
        ):
            async for event in events:
                yield event


def _dependencies(wanted: object, name: str) -> Callable[[RunContext], object]:
    if wanted in (object, type(None)):
        return lambda _: None
    if get_origin(wanted) is StateDeps:
        (state,) = get_args(wanted)
        return lambda _: StateDeps(state())
    if callable(wanted) and _takes_ctx(wanted):
        return lambda ctx: wanted(ctx=ctx)
    raise AgentLoadError(
        f"'{name}' has the deps_type {wanted}. Accepted are none, StateDeps[...] and what is made with (ctx=...); "
        "for others write a generator function that runs pydantic_ai.ui.ag_ui.AGUIAdapter with your deps."
    )


def _takes_ctx(wanted: Callable[..., object]) -> bool:
    try:
        inspect.signature(wanted).bind(ctx=None)
    except (TypeError, ValueError):
        return False
    return True
