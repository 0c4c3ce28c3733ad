"""The manifest and the tests agree in both directions. The source is read, so any selection of tests is fine."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parent
SPECIFICATION = re.compile(r"spec [\w/#-]+")


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
        assert all(SPECIFICATION.fullmatch(part) or is_section(part) for part in source.split("; ")), key
        assert sentence.endswith("."), key


def is_section(source: str) -> bool:
    """True if a source such as ``docs/tools.md#policy`` is a document of this repository that has the section."""
    path, _, anchor = source.partition("#")
    document = TESTS.parent / path
    return document.is_file() and (not anchor or anchor in anchors(document))


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
