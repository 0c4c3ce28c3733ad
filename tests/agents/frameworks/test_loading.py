"""Recognised objects, missing packages, and no needless import of a framework."""

import subprocess
import sys
import tomllib

import pytest

from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.frameworks import framework_agent
from agui_container.agents.loader import load_agent
from tests.agents.frameworks import langgraph_agents, pydantic_ai_agents
from tests.server.sockets.process import ROOT

pytestmark = pytest.mark.packages


def object_of(module: str, name: str) -> object:
    return type(name, (), {"__module__": module})()


@pytest.mark.parametrize(
    "source",
    [object(), object_of("mine", "Agent"), object_of("strands_of_mine", "Agent"), object_of("strands.tools", "Tool")],
)
def test_anything_else_is_left_to_others(source: object) -> None:
    assert framework_agent(source, "mine:agent") is None


MISSING = [
    ("ag2.agent", "Agent", "AG2", "ag2"),
    ("langroid.agent.chat_agent", "ChatAgent", "Langroid", "langroid"),
    ("agents.agent", "AgentBase", "OpenAI's Agents SDK", "openai-agents"),
    ("agno.agent.agent", "Agent", "Agno", "agno"),
    ("claude_agent_sdk.types", "ClaudeAgentOptions", "the Claude Agent SDK", "claude-sdk"),
    ("google.adk.agents.base_agent", "BaseAgent", "Google's ADK", "adk"),
    ("llama_index.core.agent.workflow.base_agent", "BaseWorkflowAgent", "LlamaIndex", "llama-index"),
    ("strands.agent.agent", "Agent", "Strands", "strands"),
    ("strands.multiagent.graph", "MultiAgentBase", "Strands", "strands"),
]


@pytest.mark.parametrize(("module", "kind", "title", "extra"), MISSING)
def test_a_missing_package_is_named_with_its_extra(module: str, kind: str, title: str, extra: str) -> None:
    with pytest.raises(AgentLoadError) as caught:
        framework_agent(object_of(module, kind), "mine:agent")
    assert str(caught.value).startswith(f"'mine:agent' is of {title}, and a package for it is missing: No module named")
    assert f"It comes with agui-container[{extra}]; in a checkout: pip install -e '.[{extra}]'." in str(caught.value)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extra in extras


@pytest.mark.parametrize(
    ("source", "title", "package", "extra"),
    [
        (langgraph_agents.agent, "LangGraph", "ag_ui_langgraph", "langgraph"),
        (pydantic_ai_agents.agent, "Pydantic AI", "pydantic_ai.ui.ag_ui", "pydantic-ai"),
    ],
)
def test_a_missing_part_of_a_framework_is_named_with_its_extra(
    source: object, title: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("agui_container.agents.frameworks.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(AgentLoadError) as caught:
        framework_agent(source, "mine:agent")
    assert str(caught.value) == (
        f"'mine:agent' is of {title}, and a package for it is missing: import of {package} halted; None in "
        f"sys.modules. It comes with agui-container[{extra}]; in a checkout: pip install -e '.[{extra}]'."
    )


def test_dependencies_that_only_the_author_can_make_are_refused_at_the_start() -> None:
    with pytest.raises(
        AgentLoadError, match=r"^'tests.+:demanding' has the deps_type <class 'int'>\. Accepted are none,"
    ):
        load_agent("tests.agents.frameworks.pydantic_ai_agents:demanding")


def test_no_framework_is_imported_for_an_agent_of_another_kind() -> None:
    code = (
        "import sys; from agui_container.agents.loader import load_agent; load_agent('examples.hello_agent:agent');"
        "print({'strands', 'langgraph', 'langchain_core', 'pydantic_ai'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
