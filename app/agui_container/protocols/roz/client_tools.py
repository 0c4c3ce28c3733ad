"""Tools that a roz client offers in one session, by name.

Rule: a tool set belongs to its source. A second registration of a source replaces its tools, and an empty list removes
them. A registration without a source adds to the tools of the start, and removes none. A run has the tools that
are registered when it begins or continues a turn, or the tools of its message.
"""

from collections.abc import Collection, Mapping, Sequence

from ag_ui.core import Tool
from msgspec import Struct

from agui_container.protocol.errors import AppError, ErrorCode
from agui_container.protocols.gen import agent_pb2 as pb
from agui_container.protocols.roz.client_messages import tool_of
from agui_container.protocols.roz.options import PermissionRule, rule_for

MAX_TOOLS = 1_000
TIMEOUT_MS = 60_000
"""Milliseconds for a tool that has no timeout of its own."""

MAX_TIMEOUT_MS = 3_600_000

CATEGORIES = {
    pb.TOOL_CATEGORY_PHYSICAL: "physical",
    pb.TOOL_CATEGORY_PURE: "pure",
    pb.TOOL_CATEGORY_CODE_SANDBOX: "code_sandbox",
}
"""Names of the categories of tools, by the values of clients."""


class ClientTool(Struct, frozen=True):
    """One tool of the client. ``category`` is one of ``CATEGORIES``, or empty."""

    tool: Tool
    timeout_ms: int
    category: str
    source: str
    size: int


ToolsByName = Mapping[str, ClientTool]


def tools_by_name(schemas: Collection[pb.ToolSchema], source: str = "") -> dict[str, ClientTool]:
    """Of several tools with one name, the last one is used. Raises ``AppError`` VALIDATION_ERROR."""
    if len(schemas) > MAX_TOOLS:
        raise AppError(ErrorCode.VALIDATION_ERROR, f"tools: a client may offer {MAX_TOOLS} tools at most.")
    tools = {}
    for schema in schemas:
        timeout = min(schema.timeout_ms or TIMEOUT_MS, MAX_TIMEOUT_MS)
        category = CATEGORIES.get(schema.category, "")
        tools[schema.name] = ClientTool(tool_of(schema), timeout, category, source, schema.ByteSize())
    return tools


class ClientTools:
    """Tools of a session. The rules of the server's tool policy, as the client is told them, hold for these, too."""

    def __init__(self, rules: Sequence[PermissionRule] = ()) -> None:
        self._rules = rules
        self.current: ToolsByName = {}
        self.system_contexts: dict[str, str] = {}

    @property
    def size(self) -> int:
        texts = sum(len(source) + len(text) for source, text in self.system_contexts.items())
        return texts + sum(tool.size for tool in self.current.values())

    def for_turn(self, own: ToolsByName) -> ToolsByName:
        """Return the tools of a message, or else those of the session, without those that a rule denies."""
        return {name: it for name, it in (own or self.current).items() if rule_for(self._rules, name).policy != "deny"}

    def register(self, source: str, new: ToolsByName, system_context: str) -> None:
        """Replace the tools of a source, or add tools without one. Too many raise ``AppError`` and change nothing."""
        prefix = f"{source}__"
        remaining = {
            name: tool
            for name, tool in self.current.items()
            if not source or (tool.source != source and not name.startswith(prefix))
        }
        if len(remaining.keys() | new.keys()) > MAX_TOOLS:
            raise AppError(ErrorCode.VALIDATION_ERROR, f"tools: a client may offer {MAX_TOOLS} tools at most.")
        self.current = {**remaining, **new}
        earlier = self.system_contexts.pop(source, "")
        if not source:
            is_known = f"\n\n{system_context}\n\n" in f"\n\n{earlier}\n\n"
            system_context = earlier if is_known else "\n\n".join(filter(None, (earlier, system_context)))
        if system_context and (new or not source):
            self.system_contexts[source] = system_context
