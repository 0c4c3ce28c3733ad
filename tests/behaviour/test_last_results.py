"""Several results of one call: a framework's model reads the last one."""

from collections.abc import AsyncIterator

import pytest
from ag_ui.core import PROTOCOL_VERSION
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agui_container.agents.frameworks import framework_agent
from tests.behaviour.conversations import PAINT
from tests.conftest import Connect
from tests.engine.doubles import Json
from tests.requirements import requirement


def read_results(state: MessagesState) -> MessagesState:
    """Say the results that the conversation holds."""
    results = [str(message.content) for message in state["messages"] if isinstance(message, ToolMessage)]
    return {"messages": [AIMessage(content=f"read {results}")]}


def graph(checkpointer: InMemorySaver | None) -> object:
    builder = StateGraph(MessagesState)
    builder.add_node("read", read_results)
    builder.add_edge(START, "read")
    return builder.compile(checkpointer=checkpointer)


async def say_results(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str]:
    """Say the results that the conversation holds."""
    results = [str(part.content) for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
    yield f"read {results}"


def agent(kind: str) -> object:
    """An agent of a framework."""
    match kind:
        case "pydantic_ai":
            return Agent(FunctionModel(stream_function=say_results))
        case "langgraph with checkpoints":
            return graph(InMemorySaver())
    return graph(None)


@requirement("assistant.last-result")
@pytest.mark.parametrize("kind", ["langgraph", "langgraph with checkpoints", "pydantic_ai"])
@pytest.mark.parametrize("is_known", [True, False], ids=["in two runs", "in one run"])
async def test_the_last_result_of_a_clients_call_reaches_the_model_of_a_framework(
    connect: Connect, kind: str, *, is_known: bool
) -> None:
    client = await connect(framework_agent(agent(kind), "tests:agent"))
    call = {"id": "c1", "type": "function", "function": {"name": "paint", "arguments": "{}"}}
    history: list[Json] = [
        {"id": "u1", "role": "user", "content": "go"},
        {"id": "a1", "role": "assistant", "toolCalls": [call]},
        {"id": "r1", "role": "tool", "toolCallId": "c1", "content": "pending"},
    ]
    body: Json = {"threadId": "t", "protocolVersion": PROTOCOL_VERSION, "tools": [PAINT]}
    if is_known:
        assert "pending" in str(await client.run({**body, "runId": "1", "messages": history}))
    last = [
        {"id": "r2", "role": "tool", "toolCallId": "c1", "content": "painted"},
        {"id": "u2", "role": "user", "content": "and now?"},
    ]
    events = await client.run({**body, "runId": "2", "messages": [*history, *last]})
    assert "read ['painted']" in str(events)
