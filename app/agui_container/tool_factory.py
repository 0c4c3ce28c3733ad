"""Construction of the tools of the settings, their policy and their approvals, for the assistant and for other agents.

Rule: settings are parsed and checked here at the start, and an error names its setting. MCP is imported only if a
setting names a server.
"""

import time
from collections.abc import Awaitable, Callable

from agui_container.agents.agent_tools import AgentWithTools
from agui_container.agents.approvals.approvals import Approvals
from agui_container.ports import Agent, ToolSource, allow_all
from agui_container.ports.store import InterruptStore
from agui_container.settings import TOOL_SETTINGS, Settings, SettingsError, check_extra, is_set
from agui_container.tools.policy import PolicyError, ToolPolicy


def with_tools(
    agent: Agent, settings: Settings, interrupts: InterruptStore, closers: list[Callable[[], Awaitable[None]]]
) -> AgentWithTools:
    """Return an agent that is not the assistant with the tools of the settings. Raises ``SettingsError``.

    Functions that close connections are appended to ``closers``.
    """
    sources, policy = read_sources(settings), read_policy(settings)
    closers.extend(source.aclose for source in sources)
    return AgentWithTools(
        agent,
        sources,
        policy if policy.rules else allow_all,
        Approvals(interrupts=interrupts),
        is_configured=any(is_set(settings, name) for name in TOOL_SETTINGS),
        monotonic=time.monotonic,
    )


def read_policy(settings: Settings) -> ToolPolicy:
    """Return the rules of ``AGUI_TOOL_POLICY``. Raises ``SettingsError``."""
    try:
        return ToolPolicy.parse(settings.tool_policy)
    except PolicyError as error:
        raise SettingsError(f"AGUI_TOOL_POLICY: {error}") from None


def read_sources(settings: Settings) -> tuple[ToolSource, ...]:
    """Return the tools of the MCP servers in ``AGUI_MCP_SERVERS``. Raises ``SettingsError``."""
    if settings.mcp_servers == Settings.model_fields["mcp_servers"].default:
        return ()
    check_extra("AGUI_MCP_SERVERS", "mcp")
    from agui_container.tools.mcp import McpConfigError, mcp_sources, parse_servers  # noqa: PLC0415

    try:
        return mcp_sources(parse_servers(settings.mcp_servers))
    except McpConfigError as error:
        raise SettingsError(f"AGUI_MCP_SERVERS: {error}") from None
