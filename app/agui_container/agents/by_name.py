"""Several agents as one: each run goes to the agent that ``forwardedProps.agent`` names.

Rule: a name is checked before its run exists. Without a name the default agent answers, so clients that know nothing of
names work as with one agent. A thread belongs to no agent: each of its runs may name another one.
"""

from collections.abc import AsyncIterator, Callable, Mapping

from ag_ui.core import AgentCapabilities, RunAgentInput
from msgspec import Struct
from pydantic import TypeAdapter

from agui_container.agents.as_agent import capabilities_of, only_answers, thread_cleanup_of
from agui_container.ports import Agent, Item, RunContext
from agui_container.protocol.errors import validation_error
from agui_container.protocol.parser import AGENT, read_forwarded_prop

_AGENT_NAME = TypeAdapter(str)


class AgentsByName(Struct, frozen=True):
    """Implements ``ports.Agent``, ``ports.Responder`` and ``ports.ThreadCleanup`` with agents by name."""

    default: str
    agents: Mapping[str, Agent]

    def name_of(self, input: RunAgentInput) -> str:
        """Raise ``AppError`` VALIDATION_ERROR if the input names an agent that is not served."""
        name = read_forwarded_prop(input.forwarded_props, AGENT, _AGENT_NAME) or self.default
        if name not in self.agents:
            known = ", ".join(self.agents)
            message = f"forwardedProps.{AGENT}: there is no agent named '{name[:64]}'; known are {known}."
            raise validation_error(message)
        return name

    def run(self, input: RunAgentInput, ctx: RunContext) -> AsyncIterator[Item]:
        return self.agents[self.name_of(input)].run(input, ctx)

    def capabilities(self) -> AgentCapabilities:
        own = capabilities_of(self.agents[self.default]) or AgentCapabilities()
        described = [describe(name, agent) for name, agent in self.agents.items()]
        return own.model_copy(update={"custom": {**(own.custom or {}), "agents": described}})

    @property
    def only_answers(self) -> bool:
        return all(map(only_answers, self.agents.values()))

    async def forget_thread(self, owner: str, thread_id: str) -> None:
        for agent in self.agents.values():
            if (cleanup := thread_cleanup_of(agent)) is not None:
                await cleanup.forget_thread(owner, thread_id)


DESCRIBED = ("model", "models", "suggestions")
"""Custom capabilities that the description of each agent repeats, because clients show them where one is chosen."""


def describe(name: str, agent: Agent) -> dict[str, object]:
    """Return the name of an agent, its description and those custom capabilities that differ from agent to agent."""
    own = capabilities_of(agent) or AgentCapabilities()
    custom = {key: value for key, value in (own.custom or {}).items() if key in DESCRIBED}
    description = own.identity.description if own.identity else None
    return {"name": name, **({"description": description} if description else {}), **custom}


def namer_of(agent: Agent, name: str) -> Callable[[RunAgentInput], str]:
    """Return a function that raises as ``AgentsByName.name_of``. ``name`` is that of a server's only agent."""
    return agent.name_of if isinstance(agent, AgentsByName) else lambda _: name
