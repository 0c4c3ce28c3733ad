"""``AGUI_TOOLS=module:attribute`` finds tools, or says in one sentence why not."""

from pathlib import Path

import pytest

from agui_container.tools.loader import ToolLoadError, load_tools

MODULE = """
from agui_container.tools.function_tool import tool

@tool
def add(a: int, b: int) -> int:
    return a + b

@tool
def sub(a: int, b: int) -> int:
    return a - b

def plain():
    pass

both = [add, sub]
twice = (add, sub, add)
mixed = [add, plain]
number = 3

class Tools:
    only = add
"""
ACCEPTED = "Accepted are a function with @tool, an object with 'spec' and 'call', and a list of these."


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_tools.py").write_text(MODULE)
    (tmp_path / "loaded_bad_tools.py").write_text(MODULE.replace("a: int, b: int", "*a: int"))
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("reference", "names"),
    [
        ("loaded_tools:add", ["add"]),
        (" loaded_tools:both\n", ["add", "sub"]),
        ("loaded_tools:Tools.only", ["add"]),
    ],
)
def test_tools_are_found(reference: str, names: list[str]) -> None:
    assert [tool.spec.name for tool in load_tools(reference)] == names


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("loaded_tools:mul", "The module 'loaded_tools' has no 'mul'."),
        (
            "loaded_bad_tools:add",
            (
                "The module 'loaded_bad_tools' cannot be imported: ToolDefinitionError: "
                "'add' takes '*a: int', but a model gives each argument by its name."
            ),
        ),
        ("loaded_tools:plain", f"'loaded_tools:plain' is a function without @tool. {ACCEPTED}"),
        ("loaded_tools:mixed", f"'loaded_tools:mixed[1]' is a function without @tool. {ACCEPTED}"),
        ("loaded_tools:number", f"'loaded_tools:number' is of type int. {ACCEPTED}"),
        ("loaded_tools:Tools", f"'loaded_tools:Tools' is of type type. {ACCEPTED}"),
        ("loaded_tools:twice", "'loaded_tools:twice' has two tools that are named 'add'."),
    ],
)
def test_a_reference_that_cannot_be_loaded_is_explained_in_a_sentence(reference: str, sentence: str) -> None:
    with pytest.raises(ToolLoadError) as caught:
        load_tools(reference)
    assert str(caught.value) == f"AGUI_TOOLS: {sentence}"
