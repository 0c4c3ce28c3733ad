"""An agent that plays the row of ``SCRIPTS`` that the last user message names. Run with AGUI_AGENT.

A row is here if a wire could spoil it. Every end of a run is shown in ``tests.behaviour``, and ``test_differential``
shows that what we let through is legal for the official client.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from math import inf, nan
from typing import cast

from ag_ui import core as ag

from agui_container.ports import Item, RunContext
from tests.protocol.samples import CHUNKS, INNER


@dataclass(frozen=True)
class Script:
    """Items of the agent, the end that a client must see, and what the agent raises behind its items."""

    items: Iterable[object]
    end: str = "RUN_FINISHED"
    raises: BaseException | None = None


TEXT = ag.TextMessageStartEvent(message_id="m")
OPEN = [
    ag.StepStartedEvent(step_name="plan"),
    ag.SubagentStartedEvent(subagent_run_id="s", name="helper"),
    ag.ReasoningStartEvent(message_id="g"),
    ag.ReasoningMessageStartEvent(message_id="g", role="reasoning"),
    ag.TextMessageStartEvent(message_id="m", subagent_run_id="s"),
    ag.ToolCallStartEvent(tool_call_id="c", tool_call_name="tool", parent_message_id="m"),
    "text",
]
WAIT = "wait until the run is over"


def custom(value: object) -> ag.CustomEvent:
    return ag.CustomEvent(name="n", value=value)


SCRIPTS = {
    "raises with much open": Script(OPEN, "RUN_ERROR", ValueError("secret")),
    "yields half a symbol": Script(["a", "\ud800", "b"]),
    "yields text that looks like frames": Script(["a\n\ndata: x\r\n\r\nid: 9\n\n: c", "\u2028\u2029\x00\x85\ufeff"]),
    "yields text too long for a frame": Script(["\U0001f600" * 20_000, TEXT, "\x01" * 20_000]),
    "yields numbers that JSON lacks": Script([custom(nan), custom([inf, -inf])]),
    "yields numbers that JavaScript rounds": Script([custom(2**70)]),
}
OTHERS = {
    "yields all event types": Script([*INNER, *CHUNKS]),
    "adds an unknown field": Script([ag.CustomEvent(name="n", value=1, surprise=True)]),
    "waits with much open": Script([*OPEN, ag.RawEvent(event="ready"), WAIT]),
}


class ScriptedAgent:
    async def run(self, run_input: ag.RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        last = run_input.messages[-1]
        assert isinstance(last, ag.UserMessage)
        script = (SCRIPTS | OTHERS)[str(last.content)]
        for item in script.items:
            if item is WAIT:
                await asyncio.Event().wait()
            yield cast("Item", item)
        if script.raises is not None:
            raise script.raises


agent = ScriptedAgent()
