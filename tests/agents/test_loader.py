"""``module:attribute`` finds an agent, or says in one sentence why not."""

from pathlib import Path

import pytest

from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.loader import load_agent
from tests.contexts import collect_items, run_context, run_input

MODULE = """
class Box:
    async def agent(self, input):
        yield "from the box"

async def agent(input):
    yield "hello"

class Agent:
    pass

box = Box()
"""

AWS_MODULE = """
class Starlette:
    pass

class BedrockAgentCoreApp(Starlette):
    __module__ = "bedrock_agentcore.runtime.app"

    def run(self, port=8080, host=None, **kwargs):
        raise AssertionError("an application was started")

other = BedrockAgentCoreApp()
crew = type('Crew', (), {'__module__': 'crewai.crew'})()
"""
"""A server of AWS's SDK, with the names and methods of its class."""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "loaded_agent": MODULE,
        "loaded_aws": AWS_MODULE,
        "loaded_broken": "1 / 0",
        "loaded_missing": "import loaded_nowhere",
        "loaded_syntax": "def",
    }
    for name, source in files.items():
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("loaded_agent:agent", "hello"),
        (" loaded_agent:agent\n", "hello"),
        ("loaded_agent:box.agent", "from the box"),
    ],
)
async def test_an_agent_is_found(reference: str, said: str) -> None:
    assert await collect_items(load_agent(reference).run(run_input("go"), run_context())) == [said]


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("agent", "'agent' is not of the form module:attribute, for example my_agent:agent."),
        (":agent", "':agent' is not of the form module:attribute, for example my_agent:agent."),
        ("agent:", "'agent:' is not of the form module:attribute, for example my_agent:agent."),
        ("loaded_nowhere:agent", "There is no module 'loaded_nowhere', neither in the working folder nor installed."),
        (
            "loaded_nowhere.deep:agent",
            "There is no module 'loaded_nowhere', neither in the working folder nor installed.",
        ),
        ("loaded_agent:other", "The module 'loaded_agent' has no 'other'."),
        ("loaded_agent:box.other", "The module 'loaded_agent' has no 'box.other'."),
        ("loaded_broken:agent", "The module 'loaded_broken' cannot be imported: ZeroDivisionError: division by zero"),
        (
            "loaded_missing:agent",
            "The module 'loaded_missing' cannot be imported: ModuleNotFoundError: No module named 'loaded_nowhere'",
        ),
        (
            "loaded_aws:other",
            (
                "'loaded_aws:other' is an object of bedrock_agentcore.BedrockAgentCoreApp. "
                "Its entrypoint takes a payload: name an AG-UI agent instead."
            ),
        ),
        (
            "loaded_aws:crew",
            (
                "'loaded_aws:crew' is an object of crewai.Crew. crewAI cannot share an environment with this server. "
                "Serve it with ag-ui-crewai in one of its own, and name its URL, such as AGUI_AGENT=http://127.0.0.1:9000/agent."
            ),
        ),
    ],
)
def test_what_cannot_be_loaded_or_served_is_explained(reference: str, sentence: str) -> None:
    with pytest.raises(AgentLoadError) as caught:
        load_agent(reference)
    assert str(caught.value) == sentence


def test_a_syntax_error_names_module_and_line() -> None:
    with pytest.raises(AgentLoadError, match=r"'loaded_syntax' cannot be imported: SyntaxError: .+line 1"):
        load_agent("loaded_syntax:agent")
