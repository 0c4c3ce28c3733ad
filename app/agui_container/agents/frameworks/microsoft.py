"""Agents of Microsoft's Agent Framework, through ``agent-framework-ag-ui``.

Rules:

- The messages of the thread are sent with each run. The package keeps open approvals in memory.
- A message repeats nothing: the package's snapshot of messages at the end is off, and so is its call
  ``confirm_changes``, because the interrupt asks.
- A result reaches the model whatever it is. The package (1.7) takes one with ``accepted`` for the answer to an approval
  and drops it, and parts would be a text of Python.

Its releases up to 1.7.0 demand ``ag-ui-protocol`` below 0.2, and run with 1.0. pip installs both with ``--no-deps``.
"""

import json
from collections.abc import AsyncGenerator
from functools import partial

from ag_ui.core import BaseEvent, Message, RunAgentInput, ToolMessage
from agent_framework import SupportsAgentRun
from agent_framework_ag_ui import AgentFrameworkAgent

from agui_container.agents.frameworks.adapter import AdapterSource
from agui_container.agents.frameworks.translation import result_text
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
    request = input.model_copy(update={"messages": [as_result(message) for message in input.messages]})
    body = request.model_dump(mode="json", by_alias=True, exclude_none=True)
    async with maybe_aclosing(adapter.run(body)) as events:
        async for event in events:
            yield event


def as_result(message: Message) -> Message:
    """Return the result of a call as a text that is no object with ``accepted``."""
    if not isinstance(message, ToolMessage):
        return message
    text = result_text(message)
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    is_answer = isinstance(value, dict) and "accepted" in value
    return message.model_copy(update={"content": json.dumps({"result": value}) if is_answer else text})
