"""Construction of the tools of the settings, their policy and their approvals, for the assistant and for other agents.

Rule: settings are parsed and checked here at the start, and an error names its setting. MCP is imported only if a
setting names a server.
"""

import time
from collections.abc import Sequence

from agui_container.agents.gate.app_calls import AppGate
from agui_container.agents.gate.call_tool import AgentWithTools
from agui_container.agents.gate.journal import Journal
from agui_container.engine.single_reader_runs import AnswerApp, no_server
from agui_container.ports import Agent, ToolSource, allow_all
from agui_container.ports.store import Store
from agui_container.settings import TOOL_SETTINGS, Settings, SettingsError, check_extra, is_set
from agui_container.tools.policy import PolicyError, ToolPolicy


def with_tools(agent: Agent, settings: Settings, store: Store, sources: Sequence[ToolSource]) -> AgentWithTools:
    """Return an agent that is not the assistant with the tools of the settings. Raises ``SettingsError``."""
    policy = read_policy(settings)
    return AgentWithTools(
        agent,
        tuple(sources),
        policy if policy.rules else allow_all,
        Journal().with_store(store),
        is_configured=any(is_set(settings, name) for name in TOOL_SETTINGS),
        monotonic=time.monotonic,
    )


def read_policy(settings: Settings) -> ToolPolicy:
    try:
        return ToolPolicy.parse(settings.tool_policy)
    except PolicyError as error:
        raise SettingsError(f"AGUI_TOOL_POLICY: {error}") from None


def read_sources(settings: Settings) -> tuple[ToolSource, ...]:
    if settings.mcp_servers == Settings.model_fields["mcp_servers"].default:
        return ()
    check_extra("AGUI_MCP_SERVERS", "mcp")
    from agui_container.tools.mcp import McpConfigError, mcp_sources, parse_servers  # noqa: PLC0415

    try:
        return mcp_sources(parse_servers(settings.mcp_servers))
    except McpConfigError as error:
        raise SettingsError(f"AGUI_MCP_SERVERS: {error}") from None


def app_requests(settings: Settings, store: Store, sources: Sequence[ToolSource]) -> AnswerApp:
    """Return what answers the requests of MCP Apps, under the same policy. Raises ``SettingsError``."""
    if not sources:
        return no_server
    from agui_container.tools.mcp.app_requests import AppRequests  # noqa: PLC0415 - see above

    gate = AppGate(read_policy(settings), Journal().with_store(store))
    return AppRequests(sources, gate.allowed_arguments).answer
