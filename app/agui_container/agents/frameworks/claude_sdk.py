"""Anthropic's Claude Agent SDK, through ``ag-ui-claude-sdk``.

Rule: a thread of the client is a session of the SDK, which keeps the conversation. A run that is closed early is
interrupted there.
"""

from collections.abc import AsyncGenerator
from functools import partial

from ag_ui.core import BaseEvent, RunAgentInput
from ag_ui_claude_sdk import ClaudeAgentAdapter

from agui_container.agents.frameworks.adapter import AdapterSource
from agui_container.ports import RunContext
from agui_container.ports.agent import maybe_aclosing


def wrap(source: object, _: str) -> AdapterSource:
    """Make an adapter of ``ClaudeAgentOptions``. An adapter of the user has settings of its own."""
    adapter = source if isinstance(source, ClaudeAgentAdapter) else ClaudeAgentAdapter(name="agent", options=source)
    return AdapterSource(partial(translate, adapter))


async def translate(
    adapter: ClaudeAgentAdapter, input: RunAgentInput, _: RunContext
) -> AsyncGenerator[BaseEvent, None]:
    is_ended = False
    try:
        async with maybe_aclosing(adapter.run(input)) as events:
            async for event in events:
                yield event
        is_ended = True
    finally:
        if not is_ended:
            await adapter.interrupt(input.thread_id)
