"""Construction of the agents that a server serves: the built-in assistant, the user's own, or several by name.

Rule: an agent that cannot be loaded, or a setting that no agent would read, stops the start.
"""

from collections.abc import Mapping

from msgspec import Struct

from agui_container.agents.agentcore_sdk import SdkContextAgent
from agui_container.agents.as_agent import is_store_user, with_store
from agui_container.agents.by_name import agents_by_name
from agui_container.agents.loader import adapt_agent, load_agent
from agui_container.agents.run_limits import LimitedAgent
from agui_container.ports import Agent, RunLimits, Tool
from agui_container.ports.store import Store
from agui_container.settings import ASSISTANT, Settings, check_assistant_settings
from agui_container.tool_factory import with_tools
from agui_container.tools.builtin import builtin_tools
from agui_container.tools.loader import load_tools
from agui_container.transports.registration import Closers


class ServedAgent(Struct, frozen=True):
    """An agent as it was made, for its capabilities, and as it runs, with the server's tools and limits around it."""

    made: Agent
    running: Agent


class AgentFactory:
    """Makes the agents of these settings.

    Args:
        settings: all settings.
        store: the store that agents are bound to.
        closers: functions that close connections of agents are appended here.

    Attributes:
        tools: the server's tools.

    Raises:
        ToolLoadError: ``settings.tools`` names no tool.
    """

    def __init__(self, settings: Settings, store: Store, closers: Closers) -> None:
        self.tools: tuple[Tool, ...] = builtin_tools() + (load_tools(settings.tools) if settings.tools else ())
        self._settings = settings
        self._store = store
        self._closers = closers

    def build(self, default: object = None) -> ServedAgent:
        """Make the agent, or all agents as one. ``default`` is an object in the place of ``settings.agent``.

        Raises:
            SettingsError: a setting cannot be used.
            AgentLoadError: an agent cannot be loaded.
        """
        references: Mapping[str, object] = self._settings.agent_references
        if default is not None:
            references = {**references, self._settings.agent: default}
        loaded = {name: _load(name, reference) for name, reference in references.items() if reference != ASSISTANT}
        if ASSISTANT not in references.values():
            takes_tools = not all(is_store_user(agent) for agent in loaded.values())
            check_assistant_settings(self._settings, takes_tools=takes_tools)
        served = {name: self._serve(loaded[name]) if name in loaded else self._assistant() for name in references}
        if not self._settings.agents:
            return served[self._settings.agent]
        return ServedAgent(
            agents_by_name(self._settings.agent, {name: each.made for name, each in served.items()}),
            agents_by_name(self._settings.agent, {name: each.running for name, each in served.items()}),
        )

    def _serve(self, loaded: Agent) -> ServedAgent:
        agent = running = with_store(loaded, self._store)
        if not is_store_user(loaded):
            running = with_tools(agent, self._settings, self._store.interrupts, self._closers)
        limits = RunLimits(tokens=self._settings.run_tokens or None)
        return ServedAgent(agent, SdkContextAgent(LimitedAgent(running, limits)))

    def _assistant(self) -> ServedAgent:
        from agui_container.assistant_factory import build_assistant  # noqa: PLC0415 - other agents need nothing of it

        agent = build_assistant(self._settings, self.tools, self._closers).with_store(self._store)
        return ServedAgent(agent, SdkContextAgent(agent))


def _load(name: str, reference: object) -> Agent:
    return load_agent(reference) if isinstance(reference, str) else adapt_agent(reference, name)
