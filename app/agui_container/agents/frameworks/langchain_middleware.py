"""Middleware that gives an agent of LangChain's ``create_agent`` the tools of the client and of the server.

Rules:

- A turn that calls tools of the client only ends the run, so that the client can answer. A call of one beside calls of
  other tools gets an error result that asks for it alone, because the agent must not go on without its result.
- Tools of the server run under the tool policy, with approvals.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, hook_config
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from agui_container.agents.frameworks.langchain_tools import LangChainServerTool
from agui_container.ports import current_run

ALONE = "Error: call this tool alone, without other tools in the same turn."


class ClientToolsState(AgentState[Any]):
    """State with the tools of the client, under the key of ``ag-ui-langgraph``."""

    tools: NotRequired[list[Any]]


class AguiMiddleware(AgentMiddleware[ClientToolsState, Any, Any]):
    """Offers the tools of the run to the model."""

    state_schema = ClientToolsState

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        named = {getattr(tool, "name", None) for tool in request.tools}
        offered: list[Any] = [
            tool for tool in (*client_tools(request.state), *server_tools()) if name_of(tool) not in named
        ]
        return await handler(request.override(tools=[*request.tools, *offered]))

    @hook_config(can_jump_to=["end"])
    async def aafter_model(
        self,
        state: ClientToolsState,
        runtime: Runtime[Any],  # noqa: ARG002 - as in the base class
    ) -> dict[str, Any] | None:
        last = state["messages"][-1]
        names = {name_of(tool) for tool in client_tools(state)}
        calls = last.tool_calls if isinstance(last, AIMessage) else []
        return {"jump_to": "end"} if calls and all(call["name"] in names for call in calls) else None

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        call = request.tool_call
        if call["name"] in {name_of(tool) for tool in client_tools(request.state)}:
            return ToolMessage(content=ALONE, tool_call_id=call["id"], name=call["name"], status="error")
        tool = next((each for each in server_tools() if each.name == call["name"]), None)
        return await handler(request if tool is None or request.tool else request.override(tool=tool))


def client_tools(state: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - the state of an agent
    """Return the client's tools in OpenAI's form, which every model of LangChain takes."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool.get("parameters") or {"type": "object", "properties": {}},
            },
        }
        for tool in state.get("tools") or ()
    ]


def server_tools() -> list[LangChainServerTool]:
    return [LangChainServerTool.of(tool.spec) for tool in current_run().tools.values()]


def name_of(tool: Any) -> str:  # noqa: ANN401 - a tool or its form for OpenAI
    return str(tool["function"]["name"] if isinstance(tool, dict) else tool.name)
