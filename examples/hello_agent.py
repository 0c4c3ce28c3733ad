"""The smallest agent: strings are streamed as text, and any AG-UI event may stand beside them.

AGUI_AGENT=examples.hello_agent:agent make run
"""

from collections.abc import AsyncIterator

from ag_ui.core import BaseEvent, RunAgentInput, StateSnapshotEvent


async def agent(input: RunAgentInput) -> AsyncIterator[str | BaseEvent]:
    """Greet, and tell the client how long the conversation is."""
    yield "Hello "
    yield "from your own agent."
    yield StateSnapshotEvent(snapshot={"messages": len(input.messages)})
