"""The server's tools as tools of LangChain."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from ag_ui.core import Tool as ToolSpec
from langchain_core.tools import BaseTool, ToolException

from agui_container.ports import PendingResult, ToolContent, ToolError, current_run
from agui_container.ports.tool import for_models

CALL_ID: ContextVar[str | None] = ContextVar("CALL_ID", default=None)
"""Id of the call that LangChain runs in this task or thread. It passes the id to ``run``, and not to ``_run``."""


class LangChainServerTool(BaseTool):
    """One tool of the server. A failed call becomes an error result for the model."""

    @classmethod
    def of(cls, spec: ToolSpec) -> "LangChainServerTool":
        parameters = spec.parameters if isinstance(spec.parameters, dict) else {"type": "object", "properties": {}}
        return cls(name=spec.name, description=spec.description, args_schema=parameters, handle_tool_error=True)

    async def arun(self, tool_input: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - LangChain's own
        token = CALL_ID.set(options.get("tool_call_id"))
        try:
            return await super().arun(tool_input, *args, **options)
        finally:
            CALL_ID.reset(token)

    def run(self, tool_input: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - LangChain's own
        token = CALL_ID.set(options.get("tool_call_id"))
        try:
            return super().run(tool_input, *args, **options)
        finally:
            CALL_ID.reset(token)

    async def _arun(self, **arguments: object) -> object:
        try:
            return langchain_content(await self._call(arguments))
        except ToolError as error:
            raise ToolException(f"Error: {error}") from error

    def _run(self, **arguments: object) -> object:
        try:
            return langchain_content(self._call(arguments).result())
        except ToolError as error:
            raise ToolException(f"Error: {error}") from error

    def _call(self, arguments: Mapping[str, object]) -> PendingResult:
        return current_run().call_tool(self.name, arguments, call_id=CALL_ID.get())


def langchain_content(content: ToolContent) -> str | list[str | dict[Any, Any]]:
    """Return the content as LangChain has it: a text, or blocks as dictionaries."""
    content = for_models(content)
    return content if isinstance(content, str) else [part.model_dump(exclude_none=True) for part in content]
