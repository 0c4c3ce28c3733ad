"""Agents of Microsoft's Agent Framework, through ``agent-framework-ag-ui``.

Rules:

- The messages of the thread are sent with each run. The package keeps open approvals in memory.
- A message repeats nothing: the package's snapshot of messages at the end is off, and so is its call
  ``confirm_changes``, because the interrupt asks.

Its releases up to 1.7.0 demand ``ag-ui-protocol`` below 0.2, and run with 1.0. pip installs both with ``--no-deps``.
"""

from collections.abc import AsyncGenerator
from functools import partial

from ag_ui.core import BaseEvent, RunAgentInput
from agent_framework import SupportsAgentRun
from agent_framework_ag_ui import AgentFrameworkAgent

from agui_container.agents.frameworks.adapter import AdapterSource
from agui_container.ports import RunContext
from agui_container.ports.agent import maybe_aclosing


def wrap(source: SupportsAgentRun | AgentFrameworkAgent, _: str) -> AdapterSource:
    if isinstance(source, AgentFrameworkAgent):
        return AdapterSource(partial(translate, source), decide=payload_of)
    adapter = AgentFrameworkAgent(source, require_confirmation=False, emit_messages_snapshot=False)
    return AdapterSource(partial(translate, adapter), decide=payload_of)


def payload_of(approved: bool) -> object:  # noqa: FBT001 - an answer
    return {"accepted": approved}


async def translate(
    adapter: AgentFrameworkAgent, input: RunAgentInput, _: RunContext
) -> AsyncGenerator[BaseEvent, None]:
    body = input.model_dump(mode="json", by_alias=True, exclude_none=True)
    async with maybe_aclosing(adapter.run(body)) as events:
        async for event in events:
            yield event
