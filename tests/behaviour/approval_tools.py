"""The tools of the assistant's tests, loaded as a user's are: ``AGUI_TOOLS=tests.behaviour.approval_tools:tools``."""

import asyncio
import json
import time
from collections import defaultdict

from ag_ui.core import ContentPart, TextPart

from agui_container.agents.as_agent import as_agent
from agui_container.agents.gate.call_tool import AgentWithTools
from agui_container.agents.gate.journal import Journal
from agui_container.ports import RunContext, Tool
from agui_container.tools.function_tool import tool
from agui_container.tools.policy import ToolPolicy
from tests.agents.doubles import ToolBox

PAID: defaultdict[str, list[int]] = defaultdict(list)
"""Amounts that the tool ``pay`` has paid, by thread."""

TOOLS = f"{__name__}:tools"
POLICY = json.dumps(
    [
        {"tool_pattern": "pay", "policy": "ask", "reason": "it costs money", "category": "physical"},
        {"tool_pattern": "order", "policy": "ask"},
        {"tool_pattern": "draw", "policy": "ask"},
        {"tool_pattern": "wipe", "policy": "deny", "reason": "never"},
    ]
)


@tool
async def pay(amount: int, ctx: RunContext) -> str:
    """Pay."""
    PAID[ctx.thread_id].append(amount)
    return f"paid {amount}"


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool
async def wipe(ctx: RunContext) -> str:
    """Forget every payment."""
    PAID.pop(ctx.thread_id)
    return "wiped"


@tool
async def stick() -> None:
    """Never end."""
    await asyncio.Event().wait()


@tool
async def order() -> None:
    """Order something, and never hear back."""
    await asyncio.Event().wait()


@tool
async def burst() -> None:
    """Break."""
    raise ValueError("token=secret")


@tool
async def draw() -> list[ContentPart]:
    """Give a part that has no text."""
    return [TextPart.model_construct(text=None)]  # type: ignore[arg-type]


tools = [pay, echo, wipe, stick, order, burst, draw]


def with_tools(agent: object, policy: str, *given: Tool) -> AgentWithTools:
    """Return an agent of one's own with these tools, under a policy."""
    sources, parsed = (ToolBox(given),), ToolPolicy.parse(policy)
    return AgentWithTools(
        as_agent(agent, "agent"), sources, parsed, Journal(), is_configured=True, monotonic=time.monotonic
    )
