"""A LangGraph graph of two nodes, a model and its tools. The model is LangChain's fake one: it runs without an account.

    .venv/bin/pip install -e '.[langgraph]'
    AGUI_AGENT=examples.langgraph_agent:agent make run

Say: roll
"""

from uuid import uuid4

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def roll(sides: int) -> str:
    """Roll a die."""
    return f"{sides} (it is always the highest)"


def fake_model(last: BaseMessage) -> BaseChatModel:
    """Calls the tool once the user says "roll", and says everything else back, word by word."""
    if last.text == "roll":
        call = {"name": "roll", "args": {"sides": 6}, "id": str(uuid4())}
        return FakeMessagesListChatModel(responses=[AIMessage(content="", tool_calls=[call])])
    said = f"You rolled {last.text}." if isinstance(last, ToolMessage) else f"You said: {last.text}"
    return GenericFakeChatModel(messages=iter([AIMessage(content=said)]))


async def model(state: MessagesState) -> dict[str, list[BaseMessage]]:
    """Ask the model."""
    # A real model, made once: langchain.chat_models.init_chat_model("…").bind_tools([roll]).
    chosen = fake_model(state["messages"][-1])
    return {"messages": [await chosen.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("model", model)
graph.add_node("tools", ToolNode([roll]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
agent = graph.compile()
