"""Construction of the agents that a server serves, and of their tools: the built-in assistant, one's own, or several.

Rule: settings are parsed and checked here at the start, and an error names its setting. An agent that cannot be loaded,
or a setting that no agent would read, stops the start. MCP is imported only if a setting names a server.
"""

import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from agui_container.agents.agentcore_sdk import SdkContextAgent
from agui_container.agents.as_agent import is_store_user, with_store
from agui_container.agents.by_name import AgentsByName
from agui_container.agents.gate.app_calls import AppGate
from agui_container.agents.gate.call_tool import AgentWithTools
from agui_container.agents.gate.journal import Journal
from agui_container.agents.loader import adapt_agent, load_agent
from agui_container.agents.run_limits import LimitedAgent
from agui_container.agents.upstream import UpstreamOptions
from agui_container.engine.single_reader_runs import AnswerApp, no_server
from agui_container.ports import Agent, RunLimits, Tool, ToolSource, allow_all
from agui_container.ports.store import Store
from agui_container.settings import (
    ASSISTANT,
    TOOL_SETTINGS,
    Settings,
    SettingsError,
    check_assistant_settings,
    check_extra,
    check_upstream_settings,
    is_set,
)
from agui_container.tools.builtin import builtin_tools
from agui_container.tools.loader import load_tools
from agui_container.tools.policy import PolicyError, ToolPolicy
from agui_container.web.registration import Closers


class ServedAgent(Struct, frozen=True):
    """An agent as it was made, for its capabilities, and as it runs, with the server's tools and limits around it."""

    made: Agent
    running: Agent


class AgentFactory:
    """Makes the agents of these settings. Functions that close connections of agents are appended to ``closers``."""

    def __init__(self, settings: Settings, store: Store, closers: Closers) -> None:
        self.tools: tuple[Tool, ...] = builtin_tools() + (load_tools(settings.tools) if settings.tools else ())
        self.sources = read_sources(settings)
        closers.extend(source.aclose for source in self.sources)
        self._settings = settings
        self._store = store
        self._closers = closers
        own_tools = frozenset(tool.spec.name for tool in builtin_tools())
        self._upstream = UpstreamOptions(settings.upstream_headers, settings.upstream_raw, own_tools)

    def build(self, default: object = None) -> ServedAgent:
        """Make the agent, or all agents as one. ``default`` is an object in the place of ``settings.agent``."""
        references: Mapping[str, object] = self._settings.agent_references
        if default is not None:
            references = {**references, self._settings.agent: default}
        loaded = {name: self._load(name, reference) for name, reference in references.items() if reference != ASSISTANT}
        if not self._upstream.closers:
            check_upstream_settings(self._settings)
        self._closers.extend(self._upstream.closers)
        if ASSISTANT not in references.values():
            takes_tools = not all(is_store_user(agent) for agent in loaded.values())
            check_assistant_settings(self._settings, takes_tools=takes_tools)
        served = {name: self._serve(loaded[name]) if name in loaded else self._assistant() for name in references}
        if not self._settings.agents:
            return served[self._settings.agent]
        return ServedAgent(
            AgentsByName(self._settings.agent, {name: each.made for name, each in served.items()}),
            AgentsByName(self._settings.agent, {name: each.running for name, each in served.items()}),
        )

    def _load(self, name: str, reference: object) -> Agent:
        if isinstance(reference, str):
            return load_agent(reference, self._upstream)
        return adapt_agent(reference, name, self._upstream)

    def _serve(self, loaded: Agent) -> ServedAgent:
        agent = running = with_store(loaded, self._store)
        if not is_store_user(loaded):
            running = with_tools(agent, self._settings, self._store, self.sources)
        limits = RunLimits(tokens=self._settings.run_tokens or None)
        return ServedAgent(agent, SdkContextAgent(LimitedAgent(running, limits)))

    def _assistant(self) -> ServedAgent:
        from agui_container.assistant_factory import build_assistant  # noqa: PLC0415 - other agents need nothing of it

        agent = build_assistant(
            self._settings, read_policy(self._settings), self.tools, self.sources, self._closers
        ).with_store(self._store)
        return ServedAgent(agent, SdkContextAgent(agent))


# --- tools ------------------------------------------------------------------------------------------------------------


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
