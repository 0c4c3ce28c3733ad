"""An agent that plays the script of ``scripts_values`` that the last user message names. Run with AGUI_AGENT."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

from ag_ui.core import RunAgentInput, UserMessage

from agui_container.ports import Item, RunContext
from tests.official.scripts import Meddle, Pause
from tests.official.scripts_values import SCRIPTS


class ScriptedAgent:
    """Yield a script's items, and raise its exception."""

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
