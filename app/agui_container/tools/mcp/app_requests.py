"""Requests of MCP Apps, which a page passes on as runs with ``forwardedProps.__proxiedMCPRequest``.

Rules: an app reads only the resources that a listed tool of its server names, and calls only tools that are visible to
apps, as the policy allows. A failure is a result with ``error``, as the middleware's.

Source: ``@ag-ui/mcp-apps-middleware`` 0.1.1.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from ag_ui.core import RunAgentInput

from agui_container.ports import RunContext, ToolError, ToolSource
from agui_container.protocol.parser import AppRequest
from agui_container.tools.mcp.source import McpSource

Gate = Callable[[str, Mapping[str, object], RunAgentInput, RunContext], Awaitable[Mapping[str, object]]]
"""Returns the arguments with which a call may be made. Raises ``ToolError`` for a call that is denied, and
``RunInterrupted`` for one that a person must allow first."""


class AppRequests:
    """Answers the requests of apps by the servers of the settings."""

    def __init__(self, sources: Sequence[ToolSource], gate: Gate) -> None:
        self._sources = {source.name: source for source in sources if isinstance(source, McpSource)}
        self._gate = gate

    async def answer(self, request: AppRequest, run_input: RunAgentInput, ctx: RunContext) -> Mapping[str, object]:
        """Return the result of the request in a run's input. Raises as ``AnswerApp``."""
        try:
            return await self._answer(request, run_input, ctx)
        except ToolError as error:
            return {"error": str(error)}

    async def _answer(self, request: AppRequest, run_input: RunAgentInput, ctx: RunContext) -> Mapping[str, object]:
        source = self._sources.get(request.server)
        if source is None:
            raise ToolError(f"Unknown server: {request.server[:64]}")
        match request.method, request.params or {}:
            case "ping", _:
                return {}
            case "resources/read", {"uri": str(uri)}:
                return await source.read_resource(uri, ctx)
            case "tools/call", {"name": str(name), **rest}:
                tool = await source.tool_for_app(name, ctx)
                arguments = rest.get("arguments") or {}
                if not isinstance(arguments, dict):
                    raise ToolError("params.arguments must be an object.")
                allowed = await self._gate(tool.spec.name, arguments, run_input, ctx)
                return await tool.call_for_app(allowed, ctx)
        raise ToolError(f"An app cannot send '{request.method[:64]}' with these params.")
