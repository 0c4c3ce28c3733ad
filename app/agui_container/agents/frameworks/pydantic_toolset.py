"""The server's tools as a toolset of Pydantic AI."""

from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from agui_container.ports import Tool, ToolError, current_run
from agui_container.ports.tool import for_models

ANY_ARGUMENTS = SchemaValidator(core_schema.dict_schema())
"""The server checks the arguments itself."""


class ServerToolset(AbstractToolset[Any]):
    """The tools of the current run. A failed call becomes a result for the model."""

    @property
    def id(self) -> str:
        return "agui-container"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {name: self._tool(tool, ctx.max_retries) for name, tool in current_run().tools.items()}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 - as in the base class
    ) -> object:
        try:
            return for_models(await current_run().call_tool(name, tool_args, call_id=ctx.tool_call_id))
        except ToolError as error:
            return f"Error: {error}"

    def _tool(self, tool: Tool, max_retries: int) -> ToolsetTool[Any]:
        parameters = tool.spec.parameters if isinstance(tool.spec.parameters, dict) else {"type": "object"}
        definition = ToolDefinition(
            name=tool.spec.name, description=tool.spec.description, parameters_json_schema=parameters
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=max_retries, args_validator=ANY_ARGUMENTS)
