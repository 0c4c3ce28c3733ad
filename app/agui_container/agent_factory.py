"""Construction of the agents that a server serves: the built-in assistant, the user's own, or several by name.

Rule: an agent that cannot be loaded, or a setting that no agent would read, stops the start.
"""

from collections.abc import Mapping

from agui_container.agents.as_agent import with_store
from agui_container.agents.by_name import agents_by_name
from agui_container.agents.loader import adapt_agent, load_agent
from agui_container.agents.run_limits import LimitedAgent
from agui_container.ports import Agent, RunLimits, Tool
from agui_container.ports.store import Store
from agui_container.settings import ASSISTANT, Settings, check_assistant_settings
from agui_container.tools.builtin import builtin_tools
from agui_container.tools.loader import load_tools
from agui_container.transports.registration import Closers


class AgentFactory:
    """Makes the agents of these settings.

    Args:
        settings: all settings.
        store: the store that agents are bound to.
        closers: functions that close connections of agents are appended here.

    Attributes:
        tools: the server's tools. Those of ``AGUI_TOOLS`` are there once the assistant was built.
    """

    def __init__(self, settings: Settings, store: Store, closers: Closers) -> None:
        self.tools: tuple[Tool, ...] = builtin_tools()
        self._settings = settings
        self._store = store
        self._closers = closers

    def build(self, default: object = None) -> Agent:
        """Make the agent, or all agents as one. ``default`` is an object in the place of ``settings.agent``.

        Raises:
            SettingsError: a setting cannot be used.
            AgentLoadError, ToolLoadError: an agent or a tool cannot be loaded.
        """
        references: Mapping[str, object] = self._settings.agent_references
        if default is not None:
            references = {**references, self._settings.agent: default}
        if ASSISTANT not in references.values():
            check_assistant_settings(self._settings)
        agents = {name: self._build(name, reference) for name, reference in references.items()}
        name = self._settings.agent
        return agents_by_name(name, agents) if self._settings.agents else agents[name]

    def _build(self, name: str, reference: object) -> Agent:
        if reference == ASSISTANT:
            return self._build_assistant()
        loaded = load_agent(reference) if isinstance(reference, str) else adapt_agent(reference, name)
        limits = RunLimits(tokens=self._settings.run_tokens or None)
        return LimitedAgent(with_store(loaded, self._store), limits)

    def _build_assistant(self) -> Agent:
        from agui_container.assistant_factory import build_assistant  # noqa: PLC0415 - other agents need nothing of it

        self.tools += load_tools(self._settings.tools) if self._settings.tools else ()
        return build_assistant(self._settings, self.tools, self._closers).with_store(self._store)
