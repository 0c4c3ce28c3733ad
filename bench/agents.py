"""Agents of the measured server: the offline assistant with a tool that blocks its thread, and a paced stream."""

import asyncio
import time
from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput, UserMessage

from agui_container.agents.assistant.assistant import Assistant
from agui_container.models.offline import OfflineModel
from agui_container.ports import Item, RunContext
from agui_container.tools.function_tool import FunctionTool

BLOCK_SECONDS = 2.0
PACE_SECONDS = 0.02
"""Between two deltas of a paced stream: 50 tokens a second, as a fast model gives."""


def block() -> str:
    """A tool that blocks."""
    time.sleep(BLOCK_SECONDS)
    return "done"


TOOLS = (FunctionTool("block", "Blocks.", {"type": "object"}, block),)
ASSISTANT = Assistant(OfflineModel(), TOOLS, "", max_steps=4)


async def agent(run_input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
    """Stream ``paced SECONDS``, or any command of the offline assistant."""
    last = run_input.messages[-1]
    said = last.content if isinstance(last, UserMessage) and isinstance(last.content, str) else ""
    if said.startswith("paced "):
        for _ in range(int(float(said.split()[1]) / PACE_SECONDS)):
            yield "hello world, "
            await asyncio.sleep(PACE_SECONDS)
        return
    async for item in ASSISTANT.run(run_input, ctx):
        yield item
