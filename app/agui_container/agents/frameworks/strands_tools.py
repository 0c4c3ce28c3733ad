"""The server's tools as tools of Strands, which a hook registers before each run."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from ag_ui.core import Tool as ToolSpec
from strands.hooks import BeforeInvocationEvent, HookProvider, HookRegistry
from strands.types.tools import AgentTool

from agui_container.agents.frameworks.strands import INTERRUPTED
from agui_container.ports import RunInterrupted, ToolError, current_run
from agui_container.ports.tool import for_models
from agui_core.content import text_of


class StrandsToolHook(HookProvider):  # type: ignore[misc]  # Strands has an environment of its own
    """Hook that gives an agent the tools of the current run."""

    def register_hooks(self, registry: HookRegistry, **_: object) -> None:
        registry.add_callback(BeforeInvocationEvent, self.add_tools)

    def add_tools(self, event: BeforeInvocationEvent) -> None:
        tools = event.agent.tool_registry
        for tool in current_run().tools.values():
            if tool.spec.name not in tools.registry:
                tools.register_tool(StrandsServerTool(tool.spec))


class StrandsServerTool(AgentTool):  # type: ignore[misc]
    """One tool of the server. A failed call becomes an error result for the model."""

    def __init__(self, spec: ToolSpec) -> None:
        super().__init__()
        self._spec = spec

    @property
    def tool_name(self) -> str:
        return self._spec.name

    @property
    def tool_spec(self) -> Mapping[str, object]:
        schema = self._spec.parameters or {"type": "object", "properties": {}}
        return {"name": self._spec.name, "description": self._spec.description, "inputSchema": {"json": schema}}

    @property
    def tool_type(self) -> str:
        return "python"

    async def stream(
        self, tool_use: Mapping[str, Any], invocation_state: Mapping[str, Any], **_: object
    ) -> AsyncIterator[object]:
        """Call the tool under the policy, and yield its result.

        Strands (1.62) loses an exception of a tool that is no ``Exception``. So an interrupt is left for the adapter of
        the thread, and the agent stops without calling the model again.
        """
        call_id = tool_use["toolUseId"]
        status, text = "success", ""
        try:
            content = await current_run().call_tool(self.tool_name, tool_use["input"], call_id=call_id)
            text = text_of(for_models(content))
        except RunInterrupted as interrupted:
            invocation_state[INTERRUPTED].append(interrupted)
            invocation_state["agent"].cancel(after_current_tools=True)
        except ToolError as error:
            status, text = "error", f"Error: {error}"
        yield {"toolUseId": call_id, "status": status, "content": [{"text": text}]}  # the last item is the result
