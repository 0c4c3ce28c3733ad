"""One agent that does whatever the last user message names: a script of ``scripts_values``. Run with AGUI_AGENT."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

from ag_ui.core import RunAgentInput, UserMessage

from agui_container.ports import Item, RunContext
from tests.official.scripts import Meddle, Pause
from tests.official.scripts_values import SCRIPTS


class ScriptedAgent:
    """Yields a script's items, and then raises what the script raises."""

    async def run(self, run_input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        """Return the name in the last user message."""
        last = run_input.messages[-1]
        assert isinstance(last, UserMessage)
        script = SCRIPTS[str(last.content)]
        for item in script.items:
            if isinstance(item, Meddle):
                item.do(ctx)
                continue
            if isinstance(item, Pause):
                await asyncio.Event().wait()
            yield cast("Item", item)
        if script.raises is not None:
            raise script.raises


agent = ScriptedAgent()
