"""``module:attribute`` finds an agent, or says in one sentence why not."""

from pathlib import Path

import pytest

from agui_container.agents.as_agent import ACCEPTED, AgentLoadError
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

class AGUIApp(Starlette):
    __module__ = "bedrock_agentcore.runtime.ag_ui"

    def entrypoint(self, handler):
        return handler

    def run(self, port=8080, host=None, **kwargs):
        raise AssertionError("an application was started")

class BedrockAgentCoreApp(Starlette):
    __module__ = "bedrock_agentcore.runtime.app"

    def run(self, port=8080, host=None, **kwargs):
        raise AssertionError("an application was started")

class OwnApp(AGUIApp):
    pass

app = AGUIApp()
other = BedrockAgentCoreApp()
own = OwnApp()

@app.entrypoint
async def agent(input, context):
    yield "hello from AWS"
"""
"""An agent as AWS's SDK has it, around classes with the names and methods of the SDK."""


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
        ("loaded_aws:agent", "hello from AWS"),
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
        ("loaded_nowhere:agent", "There is no module 'loaded_nowhere' (wanted for 'loaded_nowhere')."),
        ("loaded_nowhere.deep:agent", "There is no module 'loaded_nowhere' (wanted for 'loaded_nowhere.deep')."),
        ("loaded_agent:other", "The module 'loaded_agent' has no 'other'."),
        ("loaded_agent:box.other", "The module 'loaded_agent' has no 'box.other'."),
        ("loaded_broken:agent", "The module 'loaded_broken' cannot be imported: ZeroDivisionError: division by zero"),
        (
            "loaded_missing:agent",
            "The module 'loaded_missing' cannot be imported: ModuleNotFoundError: No module named 'loaded_nowhere'",
        ),
    ],
)
def test_a_reference_that_cannot_be_loaded_is_explained_in_a_sentence(reference: str, sentence: str) -> None:
    with pytest.raises(AgentLoadError) as caught:
        load_agent(reference)
    assert str(caught.value) == sentence


def test_a_syntax_error_names_module_and_line() -> None:
    with pytest.raises(AgentLoadError, match=r"'loaded_syntax' cannot be imported: SyntaxError: .+line 1"):
        load_agent("loaded_syntax:agent")


def test_an_attribute_that_is_not_an_agent_is_named() -> None:
    with pytest.raises(AgentLoadError, match=r"^'loaded_agent:Agent' is a class: name an instance of it\."):
        load_agent("loaded_agent:Agent")


ENTRYPOINT = "Name the function or object that is its entrypoint instead."
PAYLOAD = "Its entrypoint takes a payload: name an AG-UI agent instead."


@pytest.mark.parametrize(
    ("reference", "kind", "advice"),
    [
        ("loaded_aws:app", "AGUIApp", ENTRYPOINT),
        ("loaded_aws:own", "AGUIApp", ENTRYPOINT),
        ("loaded_aws:other", "BedrockAgentCoreApp", PAYLOAD),
    ],
)
def test_an_application_of_awss_sdk_is_refused_with_advice(reference: str, kind: str, advice: str) -> None:
    with pytest.raises(AgentLoadError) as caught:
        load_agent(reference)
    assert str(caught.value) == f"'{reference}' is a server of its own (bedrock_agentcore.{kind}). {advice} {ACCEPTED}"


@pytest.mark.parametrize("reference", ["..x:agent", "loaded agent:x", "loaded_agent:", "\x00:agent"])
def test_no_reference_raises_anything_else(reference: str) -> None:
    with pytest.raises(AgentLoadError):
        load_agent(reference)
