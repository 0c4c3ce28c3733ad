"""Docstrings and names of tests name their subjects, and a class name stands for one class."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.docs.documents import ROOT

PRONOUN = re.compile(r"(What|Whether|Who|Whoever|Whatever|It|Those|How|Nothing|Where|That|These|This|Everything)\b")
NAMELESS = re.compile(r"(?:^|[.:!?] |- )(?:What|Who|Whoever|Nobody)\b.{,60}")
"""Beginning of a sentence that does not name its subject."""
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
TEST_WITHOUT_SUBJECT = re.compile(r"test_(what|whatever|who|whoever|where|how|nobody)_")
PACKAGE = [path for path in sorted((ROOT / "app").rglob("*.py")) if not path.name.endswith("_pb2.py")]
CLIENT = sorted((ROOT / "clients" / "python" / "src").rglob("*.py"))
PROGRAMS = [
    path
    for folder in ("bench", "examples", "tests", "website")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "node_modules" not in path.parts
]


def docstrings(path: Path) -> Iterator[str]:
    """Yield all strings that stand as statements: docstrings, and the texts below constants."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value.strip()


def class_names(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names of a module's classes, also of nested ones. Classes inside functions are left out."""
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            yield statement.name
        if not isinstance(statement, FUNCTION):
            yield from class_names(child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt))


@pytest.mark.parametrize("path", [*PACKAGE, *CLIENT, *PROGRAMS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_docstrings_begin_with_no_pronoun(path: Path) -> None:
    assert [text.splitlines()[0] for text in docstrings(path) if PRONOUN.match(text)] == []


@pytest.mark.parametrize("path", [*PACKAGE, *CLIENT], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_sentences_of_the_package_name_their_subjects(path: Path) -> None:
    assert [match for text in docstrings(path) for match in NAMELESS.findall(" ".join(text.split()))] == []


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_of_tests_begin_with_no_pronoun(path: Path) -> None:
    functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, FUNCTION))
    assert [function.name for function in functions if TEST_WITHOUT_SUBJECT.match(function.name)] == []


def test_a_class_name_is_defined_once() -> None:
    names = Counter(name for path in [*PACKAGE, *PROGRAMS] for name in class_names(ast.parse(path.read_text()).body))
    assert [name for name, count in names.items() if count > 1] == []
