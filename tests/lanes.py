"""The lanes of the suite; a plugin of pytest. ``--lane short`` needs Python only, and ``--lane long`` runs the rest.

Rule: a test with one of the marks ``LONG`` is in the long lane, and every other test is in the short one, so each test
is in exactly one of them. A test gets its marks in its module, from the folder that it is in (``FOLDERS``), or because
it asks for a database server (``SERVERS``). The short lane does not import modules and folders that are marked as a
whole, because they may import packages that it does not install.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

LONG = frozenset({"services", "browser", "other_language", "packages", "processes"})
"""Marks of what only the long lane installs, or has the time for. pyproject.toml says what they mean."""

TESTS = Path(__file__).parent

FOLDERS = {
    "agents/agentcore_sdk": "packages",
    "agents/frameworks": "packages",
    "aws/deploy": "packages",
    "front_ends": "browser",
    "official": "other_language",
    "web/console/browser": "browser",
}

SERVERS = frozenset({"postgres", "postgres_server", "postgres_url", "redis", "redis_server", "redis_url"})
"""Fixtures of ``tests/servers.py``, and values of parameters that name them."""


def marks_of_module(path: Path) -> set[str]:
    text = path.read_text()
    assigned = [
        node.value
        for node in (ast.parse(text).body if "pytestmark" in text else ())
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    return {node.attr for value in assigned for node in ast.walk(value) if isinstance(node, ast.Attribute)}


@cache
def folder_marks(folder: Path) -> frozenset[str]:
    relative = folder.relative_to(TESTS)
    return frozenset(FOLDERS[str(each)] for each in (relative, *relative.parents) if str(each) in FOLDERS)


def needs_servers(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    values = () if call is None else (value for value in call.params.values() if isinstance(value, str))
    return not SERVERS.isdisjoint({*getattr(item, "fixturenames", ()), *values})


def is_long(item: pytest.Item) -> bool:
    return any(mark.name in LONG for mark in item.iter_markers())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--operations", type=int, default=80, help="operations of each walk in tests/engine/test_model.py")
    parser.addoption("--lane", choices=["short", "long"], help="run the tests of one lane only: tests/lanes.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("lane") != "short" or not collection_path.is_relative_to(TESTS):
        return None
    if collection_path.is_dir():
        found = folder_marks(collection_path)
    elif collection_path.suffix == ".py":
        found = folder_marks(collection_path.parent) | marks_of_module(collection_path)
    else:
        return None
    return True if found & LONG else None


def pytest_itemcollected(item: pytest.Item) -> None:
    for name in sorted(folder_marks(item.path.parent)):
        item.add_marker(name)
    if needs_servers(item):
        item.add_marker("services")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    lane = config.getoption("lane")
    if lane is None:
        return
    others = [item for item in items if is_long(item) != (lane == "long")]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if is_long(item) == (lane == "long")]
