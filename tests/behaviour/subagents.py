"""Assistants that delegate, and views of their subagents' events."""

from dataclasses import replace

from agui_container.agents.as_agent import as_agent
from agui_container.agents.gate.journal import Journal
from agui_container.assistant.assistant import Assistant
from agui_container.assistant.subagents import Subagent
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
    """Return an assistant that can delegate, ``depth`` levels deep."""
    paid.clear()
    agent = Assistant(OfflineModel(), (pay, *builtin_tools()), policy=rules)
    for _ in range(depth):
        inner = replace(agent, journal=Journal())
        agent = replace(inner, tools=(pay, *builtin_tools(), Subagent("delegate", "Helps.", inner)))
    return agent


def make_delegating_assistant(agent: object) -> Assistant:
    return Assistant(OfflineModel(), (Subagent("delegate", "Helps.", as_agent(agent, "agent")),))


def of_type(events: list[Json], event_type: str) -> list[Json]:
    return [event for event in events if event["type"] == event_type]


def parts(events: list[Json]) -> list[str]:
    """Return the subagentRunIds in the order of their first events."""
    return [event["subagentRunId"] for event in of_type(events, "SUBAGENT_STARTED")]


def call_messages(events: list[Json]) -> list[Json]:
    """Return the user's message and the assistant's own calls, as a client without subagents keeps them."""
    start = of_type(events, "TOOL_CALL_START")[0]
    pieces = [e["delta"] for e in of_type(events, "TOOL_CALL_ARGS") if e["toolCallId"] == start["toolCallId"]]
    function = {"name": start["toolCallName"], "arguments": "".join(pieces)}
    call = {"id": start["toolCallId"], "type": "function", "function": function}
    return [
        {"id": "u1", "role": "user", "content": "asked"},
        {"id": start["parentMessageId"], "role": "assistant", "toolCalls": [call]},
    ]
