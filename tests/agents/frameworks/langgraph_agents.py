"""The scripted agents as LangGraph has them. Run with AGUI_AGENT."""

import asyncio
from collections.abc import AsyncIterator
from typing import NotRequired
from uuid import uuid4

from ag_ui_langgraph import LangGraphAgent
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from agui_container import langchain_tools
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
        said = [message.text for message in messages if isinstance(message, HumanMessage)]
        result = messages[-1].text if isinstance(messages[-1], ToolMessage) else None
        async for piece in answer(said, result):
            if isinstance(piece, Use):
                call = {"name": piece.tool, "args": ARGUMENTS, "id": str(uuid4()), "index": 0}
                message = AIMessageChunk(content="", tool_call_chunks=[call])
            else:
                message = AIMessageChunk(content=piece)
            yield ChatGenerationChunk(message=message)


class CallingChatModel(ScriptedChatModel):
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **_: object,
    ) -> AsyncIterator[ChatGenerationChunk]:
        said = next(message.text for message in messages if isinstance(message, HumanMessage))
        calls = next_calls(said, sum(isinstance(message, ToolMessage) for message in messages))
        for index, (name, arguments) in enumerate(calls):
            call = {"name": name, "args": arguments, "id": str(uuid4()), "index": index}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
        if not calls:
            yield ChatGenerationChunk(message=AIMessageChunk(content="done"))


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


graph = StateGraph(VisitsGraphState)
graph.add_node("model", model)
graph.add_node("tools", ToolNode([roll, hang, whoami, roll_if_allowed]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", route)
graph.add_edge("tools", "model")


def left(_: MessagesState) -> dict[str, object]:
    return {"messages": [AIMessage(f"left: {interrupt('left?')}")]}


def right(_: MessagesState) -> dict[str, object]:
    return {"messages": [AIMessage(f"right: {interrupt('right?')}")]}


pair = StateGraph(MessagesState)
for name, node in (("left", left), ("right", right)):
    pair.add_node(name, RunnableLambda(node))
    pair.add_edge(START, name)


async def server_tools(state: VisitsGraphState, config: RunnableConfig) -> object:
    return await ToolNode(langchain_tools()).ainvoke(state, config)


calling_graph = StateGraph(VisitsGraphState)
calling_graph.add_node("model", calling_model)
calling_graph.add_node("tools", server_tools)
calling_graph.add_edge(START, "model")
calling_graph.add_conditional_edges("model", route)
calling_graph.add_edge("tools", "model")

agent = graph.compile()
calling = calling_graph.compile()
calling_and_remembering = calling_graph.compile(checkpointer=InMemorySaver())
both = pair.compile()
asking = graph.compile(checkpointer=InMemorySaver())
configured = LangGraphAgent(name="configured", graph=agent, emit_raw_events=False)
