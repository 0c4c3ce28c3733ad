"""MCP Apps: pages that a server ships with its tools.

Rule: an app gets the results of its own server only, and those have at most ``MAX_RESULT_BYTES``.

Sources: the extension ``io.modelcontextprotocol/ui``; ``@ag-ui/mcp-apps-middleware`` 0.1.1, whose activity this is.
"""

from collections.abc import Mapping
from typing import Any

from ag_ui.core import ActivitySnapshotEvent
from mcp.client import advertise
from mcp_types import CallToolResult, Result
from mcp_types import Tool as McpToolSpec
from msgspec import Struct
from pydantic_core import to_json

from agui_container.log_values import format_fields
from agui_container.ports import RunContext, ToolError

UI = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]})

ACTIVITY = "mcp-apps"

MAX_RESULT_BYTES = 2_000_000
"""Bytes of a result for an app, as JSON. Pages have up to 445 kB today."""


class AppFacts(Struct, frozen=True):
    """What a server says about the app of a tool.

    Attributes:
        resource_uri: address of the page; None for a tool without one.
        for_model: True if the model may call the tool.
        for_apps: True if apps of the server may call it.
    """

    resource_uri: str | None = None
    for_model: bool = True
    for_apps: bool = True

    @classmethod
    def of(cls, tool: McpToolSpec) -> "AppFacts":
        meta: Mapping[str, Any] = tool.meta or {}
        ui = meta.get("ui")
        ui = ui if isinstance(ui, dict) else {}
        uri = ui.get("resourceUri", meta.get("ui/resourceUri"))  # servers of npm write the flat name as well
        visibility = ui.get("visibility", ["model", "app"])
        roles = visibility if isinstance(visibility, list) else [visibility]
        return cls(uri if isinstance(uri, str) else None, "model" in roles, "app" in roles)


def result_for_app(result: Result) -> dict[str, object]:
    """Return a result as JSON values. Raises ``ToolError`` if it is too large."""
    value = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    if len(to_json(value)) > MAX_RESULT_BYTES:
        raise ToolError(f"The result has more than {MAX_RESULT_BYTES:,} bytes, so the app cannot get it.")
    return value


def show_app(uri: str, server: str, arguments: Mapping[str, object], result: CallToolResult, ctx: RunContext) -> None:
    try:
        content = {
            "result": result_for_app(result),
            "resourceUri": uri,
            "serverHash": server,
            "serverId": server,
            "toolInput": arguments,
        }
    except ToolError as error:
        ctx.logger.warning("MCP app not shown %s", format_fields({"server": server, "error": error}))
        return
    message_id = f"app-{ctx.tool_call_id or ctx.new_id()}"
    ctx.emit(ActivitySnapshotEvent(message_id=message_id, activity_type=ACTIVITY, content=content, replace=True))
