"""Recognised objects, missing packages, and no needless import of a framework."""

import subprocess
import sys

import pytest

from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.frameworks import framework_agent
from agui_container.agents.loader import load_agent
from tests.frameworks import langgraph_agents, pydantic_agents
from tests.sockets.process import ROOT


def object_of(module: str, name: str) -> object:
    """An object of a class with this name, as if it came from that module."""
    return type(name, (), {"__module__": module})()


@pytest.mark.parametrize(
    "source", [langgraph_agents.agent, langgraph_agents.configured, pydantic_agents.agent], ids=lambda it: str(type(it))
)
def test_an_object_of_a_framework_is_an_agent(source: object) -> None:
    assert framework_agent(source, "mine:agent") is not None


@pytest.mark.parametrize(
    "source",
    [object(), object_of("mine", "Agent"), object_of("strands_of_mine", "Agent"), object_of("strands.tools", "Tool")],
)
def test_anything_else_is_left_to_others(source: object) -> None:
    assert framework_agent(source, "mine:agent") is None


@pytest.mark.parametrize(
    ("source", "title", "package", "extra"),
    [
        (object_of("strands.agent.agent", "Agent"), "Strands agent", "ag_ui_strands", "strands"),
        (langgraph_agents.agent, "LangGraph graph", "ag_ui_langgraph", "langgraph"),
        (pydantic_agents.agent, "Pydantic AI agent", "pydantic_ai.ui.ag_ui", "pydantic-ai"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    source: object, title: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("agui_container.agents.frameworks.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(AgentLoadError) as caught:
        framework_agent(source, "mine:agent")
    assert str(caught.value) == (
        f"'mine:agent' is a {title}, and its AG-UI package is missing: import of {package} halted; None in "
        f"sys.modules. It comes with agui-container[{extra}]; in a checkout: pip install -e '.[{extra}]'."
    )


def test_the_loader_knows_them() -> None:
    assert type(load_agent("tests.frameworks.pydantic_agents:agent")).__name__ == "PydanticAgent"


def test_dependencies_that_only_the_author_can_make_are_refused_at_the_start() -> None:
    with pytest.raises(
        AgentLoadError, match=r"^'tests.+:demanding' has the deps_type <class 'int'>\. Accepted are none,"
    ):
        load_agent("tests.frameworks.pydantic_agents:demanding")


def test_no_framework_is_imported_for_an_agent_of_another_kind() -> None:
    code = (
        "import sys; from agui_container.agents.loader import load_agent; load_agent('examples.hello_agent:agent');"
        "print({'strands', 'langgraph', 'langchain_core', 'pydantic_ai'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
