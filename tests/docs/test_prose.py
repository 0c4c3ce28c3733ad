"""Docstrings of the package begin with the thing they describe, and a class name stands for one class."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documents import ROOT

PRONOUN = re.compile(r"(What|Whether|Who|Whoever|Whatever|It|Those)\b")
PACKAGE = [path for path in sorted((ROOT / "app").rglob("*.py")) if not path.name.endswith("_pb2.py")]
PROGRAMS = [*PACKAGE, *sorted((ROOT / "bench").rglob("*.py")), *sorted((ROOT / "examples").rglob("*.py"))]


def docstrings(path: Path) -> Iterator[str]:
    """Yield all strings that stand as statements: docstrings, and the texts below constants."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value.strip()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_docstrings_begin_with_no_pronoun(path: Path) -> None:
    assert [text.splitlines()[0] for text in docstrings(path) if PRONOUN.match(text)] == []


def test_a_class_name_is_defined_once() -> None:
    names = Counter(
        node.name
        for path in PACKAGE
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []
