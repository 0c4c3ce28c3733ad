"""Adapters for agents of Strands, LangGraph and Pydantic AI.

Rule: the framework's own AG-UI package translates its events. The adapters make one object safe for concurrent callers
and keep exception texts out of the stream. A framework is imported only if ``AGUI_AGENT`` names one of its objects.
"""

from collections.abc import Callable

from msgspec import Struct

from agui_container.agents.as_agent import AgentLoadError
from agui_container.ports import Agent


class Framework(Struct, frozen=True):
    """A supported framework.

    Attributes:
        title: name of its agents in error messages.
        extra: extra of agui-container that installs its AG-UI package.
        wrap: adapts an object; its second argument is the object's name in error messages.
    """

    title: str
    extra: str
    wrap: Callable[[object, str], Agent]


def framework_agent(source: object, name: str) -> Agent | None:
    """Adapt ``source`` to an agent, or return None if no known framework made it. ``name`` is its name in messages.

    Raises:
        AgentLoadError: the framework's AG-UI package is not installed, or the object cannot be served.
    """
    framework = next((FRAMEWORKS[kind] for kind in qualified_classes(source) if kind in FRAMEWORKS), None)
    if framework is None:
        return None
    try:
        return framework.wrap(source, name)
    except ImportError as error:
        if (error.name or "").startswith("agui_container."):
            raise
        raise AgentLoadError(
            f"'{name}' is a {framework.title}, and its AG-UI package is missing: {error}. It comes with "
            f"agui-container[{framework.extra}]; in a checkout: pip install -e '.[{framework.extra}]'."
        ) from error


def qualified_classes(source: object) -> list[tuple[str, str]]:
    """Return the classes of an object as pairs of top-level package and class name, without importing anything."""
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(source).__mro__]


def _strands(source: object, _: str) -> Agent:
    from agui_container.agents.frameworks.strands import wrap  # noqa: PLC0415 - optional

    return wrap(source)


def _langgraph(source: object, name: str) -> Agent:
    from agui_container.agents.frameworks.langgraph import wrap  # noqa: PLC0415 - optional

    return wrap(source, name)


def _pydantic_ai(source: object, name: str) -> Agent:
    from agui_container.agents.frameworks.pydantic_ai import wrap  # noqa: PLC0415 - optional

    return wrap(source, name)


STRANDS = Framework("Strands agent", "strands", _strands)
LANGGRAPH = Framework("LangGraph graph", "langgraph", _langgraph)
PYDANTIC_AI = Framework("Pydantic AI agent", "pydantic-ai", _pydantic_ai)

FRAMEWORKS = {
    ("strands", "Agent"): STRANDS,
    ("ag_ui_strands", "StrandsAgent"): STRANDS,
    ("langgraph", "CompiledStateGraph"): LANGGRAPH,
    ("ag_ui_langgraph", "LangGraphAgent"): LANGGRAPH,
    ("pydantic_ai", "AbstractAgent"): PYDANTIC_AI,
}
"""Frameworks by top-level package and class name of an agent.

The frameworks' own AG-UI wrappers are included because they hold a user's settings and mix up concurrent runs if they
are served unchanged.
"""
