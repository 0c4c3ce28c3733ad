"""An agent of a known framework as an agent of this server: Strands, LangGraph, Pydantic AI.

Rule: the framework's own AG-UI package translates. What is added here makes one object safe for many callers, and keeps
what an exception says out of the stream. A framework is imported only when an object of it was named.
"""

from collections.abc import Callable

from msgspec import Struct

from agui_container.agents.custom.as_agent import AgentLoadError
from agui_container.ports import Agent


class Framework(Struct, frozen=True):
    """``title`` is what messages call its objects, ``extra`` what installs its AG-UI package."""

    title: str
    extra: str
    wrap: Callable[[object, str], Agent]


def framework_agent(source: object, name: str) -> Agent | None:
    """The agent around ``source``; None if it belongs to no known framework. ``name`` is what messages call it.

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
            f"agui-container[{framework.extra}]; in a checkout: pip install '.[{framework.extra}]'."
        ) from error


def qualified_classes(source: object) -> list[tuple[str, str]]:
    """The classes of an object, each as its top-level package and its name. Nothing is imported for it."""
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
"""By top-level package and class name. The frameworks' own AG-UI wrappers are here, too: a user's settings are in
them, and served as they are they would mix up concurrent runs."""
