"""Construction of the agents that a server serves: the built-in assistant, the user's own, or several by name.

Rule: an agent that cannot be loaded, or a setting that no agent would read, stops the start.
"""

from collections.abc import Mapping

from msgspec import Struct

from agui_container.agents.agentcore_sdk import SdkContextAgent
from agui_container.agents.as_agent import is_store_user, with_store
from agui_container.agents.by_name import AgentsByName
from agui_container.agents.loader import adapt_agent, load_agent
from agui_container.agents.run_limits import LimitedAgent
from agui_container.agents.upstream import UpstreamOptions
from agui_container.ports import Agent, RunLimits, Tool
from agui_container.ports.store import Store
from agui_container.settings import ASSISTANT, Settings, check_assistant_settings, check_upstream_settings
from agui_container.tool_factory import read_sources, with_tools
from agui_container.tools.builtin import builtin_tools
from agui_container.tools.loader import load_tools
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

        agent = build_assistant(self._settings, self.tools, self.sources, self._closers).with_store(self._store)
        return ServedAgent(agent, SdkContextAgent(agent))
