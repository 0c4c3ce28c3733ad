"""The scripted agents as LangGraph has them. Run with AGUI_AGENT."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NotRequired
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from agui_container import langchain_tools
from tests.agents.frameworks.dice import stumble
from tests.agents.frameworks.scripted_model import ARGUMENTS, Use, answer
from tests.agents.turns import EFFECTS
from tests.agents.turns_of_models import next_calls


class ScriptedChatModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: object,
    ) -> ChatResult:
        raise NotImplementedError

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **_: object,
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for piece in self.pieces(messages):
            calls = [] if isinstance(piece, str) else [piece]
            message = AIMessageChunk(content=piece if isinstance(piece, str) else "", tool_call_chunks=calls)
            yield ChatGenerationChunk(message=message)

    async def pieces(self, messages: list[BaseMessage]) -> AsyncIterator[str | ToolCallChunk]:
        said = [message.text for message in messages if isinstance(message, HumanMessage)]
        result = messages[-1].text if isinstance(messages[-1], ToolMessage) else None
        async for piece in answer(said, result):
            if isinstance(piece, Use):
                yield tool_call_chunk(name=piece.tool, args=ARGUMENTS, id=str(uuid4()), index=0)
            else:
                yield piece


class CallingChatModel(ScriptedChatModel):
    async def pieces(self, messages: list[BaseMessage]) -> AsyncIterator[str | ToolCallChunk]:
        said = next(message.text for message in messages if isinstance(message, HumanMessage))
        calls = next_calls(said, sum(isinstance(message, ToolMessage) for message in messages))
        for index, (name, arguments) in enumerate(calls):
            yield tool_call_chunk(name=name, args=arguments, id=str(uuid4()), index=index)
        if not calls:
            yield "done"


@tool
def roll(sides: int) -> str:
    """Roll a die."""
    return f"rolled {sides}"


@tool
async def hang(sides: int) -> str:
    """Start, and never come back."""
    EFFECTS.append("hang")
    await asyncio.Event().wait()
    return ""


@tool
def whoami(sides: int, config: RunnableConfig) -> str:
    """Return the caller's name."""
    ctx = config["configurable"]["ctx"]
    return f"{ctx.thread_id} of {ctx.caller.session_id}"


@tool
def roll_if_allowed(sides: int) -> str:
    """Roll a die once somebody has said yes."""
    return f"rolled {sides}" if interrupt("May I?")["approved"] else "not allowed"


class VisitsGraphState(MessagesState):
    visits: NotRequired[int]


async def calling_model(state: VisitsGraphState) -> dict[str, object]:
    return {"messages": [await CallingChatModel().ainvoke(state["messages"])]}


async def model(state: VisitsGraphState) -> dict[str, object]:
    reply = await ScriptedChatModel().ainvoke(state["messages"])
    return {"messages": [reply], "visits": state.get("visits", 0) + 1}


def route(state: VisitsGraphState) -> str:
    """To the tools that are here; a client's tools are for the client."""
    calls = getattr(state["messages"][-1], "tool_calls", [])
    return "tools" if calls and calls[0]["name"] != "pick" else "__end__"


def loop(model: Any, tools: Any) -> StateGraph[Any, Any, Any, Any]:  # noqa: ANN401 - as above
    """A model and its tools, in turns."""
    graph = StateGraph(VisitsGraphState)
    graph.add_node("model", model)
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", route)
    graph.add_edge("tools", "model")
    return graph


def chain(*nodes: Any) -> StateGraph[Any, Any, Any, Any]:  # noqa: ANN401 - LangGraph has many types of nodes
    """Nodes, one after the other."""
    graph, before = StateGraph(MessagesState), START
    for at, node in enumerate(nodes):
        graph.add_node(f"node{at}", node)
        graph.add_edge(before, f"node{at}")
        before = f"node{at}"
    return graph


def beside(*nodes: Any) -> StateGraph[Any, Any, Any, Any]:  # noqa: ANN401 - as above
    """Nodes at the same time."""
    graph = StateGraph(MessagesState)
    for at, node in enumerate(nodes):
        graph.add_node(f"node{at}", node)
        graph.add_edge(START, f"node{at}")
    return graph


def left(_: MessagesState) -> dict[str, object]:
    return {"messages": [AIMessage(f"left: {interrupt('left?')}")]}


def right(_: MessagesState) -> dict[str, object]:
    return {"messages": [AIMessage(f"right: {interrupt('right?')}")]}


async def server_tools(state: VisitsGraphState, config: RunnableConfig) -> object:
    return await ToolNode(langchain_tools()).ainvoke(state, config)


graph = loop(model, ToolNode([roll, hang, whoami, roll_if_allowed, tool(stumble)]))
calling_graph = loop(calling_model, server_tools)

agent = graph.compile()
calling = calling_graph.compile()
calling_and_remembering = calling_graph.compile(checkpointer=InMemorySaver())
both = beside(left, right).compile()
asking = graph.compile(checkpointer=InMemorySaver())
