"""Imports that the contracts of ``pyproject.toml`` cannot see, and containers that runs would share."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("app", "clients/python/src") for path in (ROOT / folder).rglob("*.py"))
MAY_LOAD_BY_NAME = "app/agui_container/imports.py"
"""The one place that imports what a setting names; such an import escapes the contracts."""


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text()) for file in FILES}


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_imports_are_absolute_and_by_name(trees: dict[str, ast.Module]) -> None:
    names = {(file, name) for file, tree in trees.items() for name in imported(tree)}
    by_name = {(file, name) for file, name in names if name.split(".")[0] == "importlib" and file != MAY_LOAD_BY_NAME}
    assert {(file, name) for file, name in names if name.startswith(".")} == set()
    assert {(file, name) for file, name in by_name if name != "importlib.metadata"} == set()


SHOWS_NAMES = {
    *("app/agui_container/__init__.py", "app/agui_container/agents/frameworks/server_tools.py"),
    *("app/agui_container/models/__init__.py", "app/agui_container/tools/__init__.py"),
    *("app/agui_container/protocols/gen/descriptors.py", "clients/python/src/agui_client/agentcore.py"),
}
"""Public names, and types of packages that are optional. The import contracts do not see such imports."""


def test_only_public_names_hide_imports_from_the_contracts() -> None:
    hiding = {file.relative_to(ROOT).as_posix() for file in FILES if "TYPE_CHECKING" in file.read_text()}
    assert hiding == SHOWS_NAMES
