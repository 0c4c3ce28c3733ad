"""The manifest and the tests agree, in both directions; read from the source, whatever tests are selected."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parent
SOURCE = re.compile(r"(design \d+(\.\d+)?(, promise \d)?|R\d+|V\d+|issue \d+, item \d+|spec [\w/#-]+)")


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every test function of the suite."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield path, node


def citations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The ids that a test cites."""
    return [
        str(ast.literal_eval(argument))
        for call in function.decorator_list
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "requirement"
        for argument in call.args
    ]


def test_every_behaviour_is_shown_by_a_test() -> None:
    cited = {cited for _, function in functions() for cited in citations(function)}
    assert sorted(REQUIREMENTS.keys() - cited) == []


def test_every_citation_is_in_the_manifest() -> None:
    cited = {cited for _, function in functions() for cited in citations(function)}
    assert sorted(cited - REQUIREMENTS.keys()) == []


def test_every_test_of_a_behaviour_says_which() -> None:
    silent = [
        f"{path.name}::{function.name}"
        for path, function in functions()
        if path.parent.name == "behaviour" and not citations(function)
    ]
    assert silent == []


def test_every_behaviour_has_a_source_and_a_sentence() -> None:
    for key, (source, sentence) in REQUIREMENTS.items():
        assert all(SOURCE.fullmatch(part) for part in source.split("; ")), key
        assert sentence.endswith("."), key
