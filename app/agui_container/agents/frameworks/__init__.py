"""Agents of frameworks, by the class of the object.

Rule: the framework's own translation into AG-UI's events is used where there is one. The adapters make one object safe
for concurrent callers and keep exception texts out of the stream. A framework is imported only if ``AGUI_AGENT`` names
one of its objects.
"""

from collections.abc import Callable, Container
from typing import cast

from msgspec import Struct

from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.frameworks.adapter import AdapterSource
from agui_container.agents.upstream.agent import UpstreamAgent
from agui_container.imports import own_attribute
from agui_container.ports import Agent

Wrap = Callable[[object, str], Agent | AdapterSource]


class Framework(Struct, frozen=True):
    """A supported framework.

    Attributes:
        title: what an object of it is.
        module: name of the module of this package whose ``wrap`` makes an agent or an ``AdapterSource`` of the object.
        install: what installs the packages that the module imports, as a sentence.
    """

    title: str
    module: str
    install: str

    def wrap(self, source: object, name: str) -> Agent | AdapterSource:
        """Raise ``ImportError`` if a package is missing, ``AgentLoadError`` for an object that cannot be served."""
        wrap = cast("Wrap", own_attribute(f"agents.frameworks.{self.module}", "wrap"))
        return wrap(source, name)


def framework_agent(source: object, name: str, own_tools: Container[str] = ()) -> Agent | None:
    """Return None if no known framework made the object. Raises ``AgentLoadError``.

    Agents with an ``AdapterSource`` are offered the tools of the settings, but for ``own_tools``.
    """
    framework = next((FRAMEWORKS[kind] for kind in qualified_classes(source) if kind in FRAMEWORKS), None)
    if framework is None:
        return None
    try:
        made = framework.wrap(source, name)
    except ImportError as error:
        if (error.name or "").startswith("agui_container."):
            raise
        raise AgentLoadError(
            f"'{name}' is of {framework.title}, and a package for it is missing: {error}. {framework.install}"
        ) from error
    return UpstreamAgent(made, own_tools) if isinstance(made, AdapterSource) else made


def qualified_classes(source: object) -> list[tuple[str, str]]:
    """Return pairs of top-level package and class name, without importing anything."""
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(source).__mro__]


def extra(name: str) -> str:
    return f"It comes with agui-container[{name}]; in a checkout: pip install -e '.[{name}]'."


ADK = Framework("Google's ADK", "adk", extra("adk"))
AG2 = Framework("AG2", "ag2", extra("ag2"))
AGNO = Framework("Agno", "agno", extra("agno"))
CLAUDE_SDK = Framework("the Claude Agent SDK", "claude_sdk", extra("claude-sdk"))
LANGGRAPH = Framework("LangGraph", "langgraph", extra("langgraph"))
LANGROID = Framework("Langroid", "langroid", extra("langroid"))
LLAMA_INDEX = Framework("LlamaIndex", "llama_index", extra("llama-index"))
MICROSOFT = Framework(
    "Microsoft's Agent Framework", "microsoft", "Install it with: pip install --no-deps agent-framework-ag-ui"
)
OPENAI_AGENTS = Framework("OpenAI's Agents SDK", "openai_agents", extra("openai-agents"))
PYDANTIC_AI = Framework("Pydantic AI", "pydantic_ai", extra("pydantic-ai"))
STRANDS = Framework("Strands", "strands", extra("strands"))

FRAMEWORKS = {
    ("ag2", "Agent"): AG2,
    ("ag_ui_adk", "ADKAgent"): ADK,
    ("ag_ui_langgraph", "LangGraphAgent"): LANGGRAPH,
    ("ag_ui_strands", "StrandsAgent"): STRANDS,
    ("agent_framework", "BaseAgent"): MICROSOFT,
    ("agent_framework_ag_ui", "AgentFrameworkAgent"): MICROSOFT,
    ("agents", "AgentBase"): OPENAI_AGENTS,
    ("agno", "Agent"): AGNO,
    ("agno", "Team"): AGNO,
    ("claude_agent_sdk", "ClaudeAgentOptions"): CLAUDE_SDK,
    ("google", "BaseAgent"): ADK,
    ("langgraph", "CompiledStateGraph"): LANGGRAPH,
    ("langroid", "ChatAgent"): LANGROID,
    ("langroid", "Task"): LANGROID,
    ("llama_index", "AgentWorkflow"): LLAMA_INDEX,
    ("llama_index", "BaseWorkflowAgent"): LLAMA_INDEX,
    ("pydantic_ai", "AbstractAgent"): PYDANTIC_AI,
    ("strands", "Agent"): STRANDS,
    ("strands", "MultiAgentBase"): STRANDS,
}
"""Frameworks by top-level package and class name of an agent.

The frameworks' own AG-UI wrappers are included because they hold a user's settings and mix up concurrent runs if they
are served unchanged.
"""
