"""The tools that a roz client offers in one session, by name.

Rule: a tool set belongs to its source. Registering a source again replaces its tools, and an empty list removes them. A
turn is offered the tools that there are when it begins, or those that its message brings.
"""

from collections.abc import Iterable, Mapping

from ag_ui.core import Tool
from msgspec import Struct

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.transports.grpc.gen.roz.v1 import agent_pb2 as pb
from agui_container.transports.grpc.roz.requests import tool_of

MAX_TOOLS = 1_000
MAX_SOURCES = 1_000
TIMEOUT_MS = 60_000
"""How long a client may take to run a tool that names no time of its own."""

MAX_TIMEOUT_MS = 3_600_000

PHYSICAL = "physical"
CATEGORIES = {pb.TOOL_CATEGORY_PHYSICAL: PHYSICAL, pb.TOOL_CATEGORY_PURE: "pure"}


class ClientTool(Struct, frozen=True):
    """One tool. ``category`` is ``physical``, ``pure`` or empty."""

    tool: Tool
    timeout_ms: int
    category: str
    source: str


Offered = Mapping[str, ClientTool]


def offered(schemas: Iterable[pb.ToolSchema], source: str = "") -> dict[str, ClientTool]:
    """Tools by name; of two with the same name the last one counts. Raises ``AppError`` VALIDATION_ERROR."""
    tools = {}
    for schema in schemas:
        timeout = min(schema.timeout_ms or TIMEOUT_MS, MAX_TIMEOUT_MS)
        category = CATEGORIES.get(schema.category, "")
        tools[schema.name] = ClientTool(tool_of(schema), timeout, category, source)
    if len(tools) > MAX_TOOLS:
        raise AppError(ErrorCode.VALIDATION_ERROR, f"tools: a client may offer {MAX_TOOLS} tools at most.")
    return tools


class ClientTools:
    """The tools of a session.

    Attributes:
        guidance: what sources say of the use of their tools.
    """

    def __init__(self) -> None:
        self._tools: dict[str, ClientTool] = {}
        self.guidance: dict[str, str] = {}

    def register(self, source: str, schemas: Iterable[pb.ToolSchema], guidance: str) -> None:
        """Replace the tools of a source, which are its own and those with its prefix.

        Raises:
            AppError: VALIDATION_ERROR for too many tools or sources, or one without a name; then nothing has changed.
        """
        new, prefix = offered(schemas, source), f"{source}__"
        kept = {
            name: tool
            for name, tool in self._tools.items()
            if tool.source != source and not (source and name.startswith(prefix))
        }
        if len(kept.keys() | new.keys()) > MAX_TOOLS:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"tools: a client may offer {MAX_TOOLS} tools at most.")
        if guidance and source not in self.guidance and len(self.guidance) >= MAX_SOURCES:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"source: a session may have {MAX_SOURCES} sources at most.")
        self._tools = {**kept, **new}
        self.guidance.pop(source, None)
        if guidance and new:
            self.guidance[source] = guidance

    @property
    def offered(self) -> Offered:
        """The tools of now."""
        return self._tools
