"""Assistants that delegate, and views of their subagents' events."""

from dataclasses import replace

from agui_container.agents.as_agent import as_agent
from agui_container.agents.assistant.approvals.approvals import Approvals
from agui_container.agents.assistant.assistant import Assistant
from agui_container.agents.assistant.subagents import Subagent
from agui_container.models.offline import OfflineModel
from agui_container.ports import Permission, PolicyDecision
from agui_container.tools.builtin import builtin_tools
from agui_container.tools.function_tool import tool
from tests.engine.doubles import Json

paid: list[int] = []


@tool
def pay(amount: int) -> str:
    """Pay."""
    paid.append(amount)
    return f"paid {amount}"


def rules(name: str) -> PolicyDecision:
    return PolicyDecision(Permission.ASK, reason="money") if name == "pay" else PolicyDecision(Permission.ALLOW)


def team(depth: int = 2) -> Assistant:
    """An assistant that can delegate, ``depth`` deep."""
    paid.clear()
    agent = Assistant(OfflineModel(), (pay, *builtin_tools()), policy=rules)
    for _ in range(depth):
        inner = replace(agent, approvals=Approvals())
        agent = replace(inner, tools=(pay, *builtin_tools(), Subagent("delegate", "Helps.", inner)))
    return agent


def led_by(agent: object) -> Assistant:
    """An assistant whose only helper is this agent."""
    return Assistant(OfflineModel(), (Subagent("delegate", "Helps.", as_agent(agent, "agent")),))


def of(events: list[Json], event_type: str) -> list[Json]:
    return [event for event in events if event["type"] == event_type]


def parts(events: list[Json]) -> list[str]:
    """The subagentRunIds in the order in which they were announced."""
    return [event["subagentRunId"] for event in of(events, "SUBAGENT_STARTED")]


def called(events: list[Json]) -> list[Json]:
    """The user's message and the assistant's own calls, as a client keeps them that knows no subagents."""
    start = of(events, "TOOL_CALL_START")[0]
    pieces = [e["delta"] for e in of(events, "TOOL_CALL_ARGS") if e["toolCallId"] == start["toolCallId"]]
    function = {"name": start["toolCallName"], "arguments": "".join(pieces)}
    call = {"id": start["toolCallId"], "type": "function", "function": function}
    return [
        {"id": "u1", "role": "user", "content": "asked"},
        {"id": start["parentMessageId"], "role": "assistant", "toolCalls": [call]},
    ]
