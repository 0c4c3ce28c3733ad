"""Docstrings and names of tests name their subjects, and a class name stands for one class."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

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


class Module(NamedTuple):
    """The texts of one file, and the names that it defines.

    Attributes:
        texts: all strings that stand as statements: docstrings, and the texts below constants.
    """

    path: Path
    texts: list[str]
    functions: list[str]
    classes: list[str]


@cache
def module(path: Path) -> Module:
    """Parse a file."""
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree))
    strings = [
        node.value.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    texts = [text.strip() for text in strings if isinstance(text, str)]
    functions = [node.name for node in nodes if isinstance(node, FUNCTION)]
    return Module(path, texts, functions, list(class_names(tree.body)))


def class_names(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names of a module's classes, also of nested ones. Classes inside functions are left out."""
    for statement in statements:
        if isinstance(statement, ast.ClassDef):
            yield statement.name
        if not isinstance(statement, FUNCTION):
            yield from class_names(child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt))


def texts(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    return ((path, text) for path in paths for text in module(path).texts)


def test_docstrings_begin_with_no_pronoun() -> None:
    found = [(path, text) for path, text in texts([*PACKAGE, *CLIENT, *PROGRAMS]) if PRONOUN.match(text)]
    assert found == []


def test_sentences_of_the_package_name_their_subjects() -> None:
    found = [
        (path, match) for path, text in texts([*PACKAGE, *CLIENT]) for match in NAMELESS.findall(" ".join(text.split()))
    ]
    assert found == []


def test_names_of_tests_begin_with_no_pronoun() -> None:
    names = [(path, name) for path in PROGRAMS for name in module(path).functions]
    assert [(path, name) for path, name in names if TEST_WITHOUT_SUBJECT.match(name)] == []


def test_a_class_name_is_defined_once() -> None:
    names = Counter(name for path in [*PACKAGE, *PROGRAMS] for name in module(path).classes)
    assert [name for name, count in names.items() if count > 1] == []
