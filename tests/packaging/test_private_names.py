"""Private names of other packages: which are used, and that no version is allowed which may lack them.

A name here is used because its package has no public one for the purpose. A package of a framework is held to one minor
in ``pyproject.toml``. grpclib may be newer, because gRPC is not served with a release that is not known.
"""

import ast
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from agui_container.transports.grpc.options import KNOWN_GRPCLIB

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SERVER = {"uvicorn", "websockets"}
"""The server's own, which are not looked at here."""

PUBLIC = {"opentelemetry._logs"}
"""Modules that their package's documentation names, underscore and all."""

IMPORTED = {
    "grpclib": {"grpclib.events._DispatchServerEvents"},
    "pydantic-ai-slim": {"pydantic_ai.ui.ag_ui._utils.INTERRUPT_ID_PREFIX"},
}
USED = {
    "ag-ui-langgraph": {"_interrupts_to_agui", "_collect_interrupts", "_build_command_from_agui_resume"},
}
"""Attributes of the package's objects; ruff finds each use (SLF001)."""


def is_private(name: str) -> bool:
    """Return True if a part of a dotted name begins with one underscore."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def imported() -> Iterator[str]:
    """All names that the application imports from other packages."""
    for path in (ROOT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and node.module not in PUBLIC:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def marked() -> Iterator[str]:
    """The private attributes on lines where ruff is told that they are used."""
    for path in (ROOT / "app").rglob("*.py"):
        for line in path.read_text().splitlines():
            code, _, reason = line.partition("# noqa: SLF001")
            if reason:
                nodes = ast.walk(ast.parse(code.strip()))
                yield from (node.attr for node in nodes if isinstance(node, ast.Attribute) and is_private(node.attr))


def test_no_other_private_names_are_imported() -> None:
    private = {
        name for name in imported() if is_private(name) and name.split(".")[0] not in SERVER | {"agui_container"}
    }
    assert private == set(chain.from_iterable(IMPORTED.values()))


def test_no_other_private_attributes_are_used() -> None:
    assert set(marked()) == set(chain.from_iterable(USED.values()))


def wanted(package: str) -> Requirement:
    optional = chain.from_iterable(PROJECT["optional-dependencies"].values())
    requirements = map(Requirement, [*PROJECT["dependencies"], *optional])
    [requirement] = [each for each in requirements if each.name == package]
    return requirement


@pytest.mark.parametrize("package", sorted({*IMPORTED, *USED} - {"grpclib"}))
def test_a_package_whose_private_names_are_used_is_held_to_one_minor(package: str) -> None:
    bounds = {each.operator: Version(each.version) for each in wanted(package).specifier}
    lowest, beyond = bounds[">="].release, bounds["<"].release
    # Below 1.0 with a minor of 0 each patch may change anything.
    depth = 2 if lowest[:2] > (0, 0) else 3
    assert beyond[:depth] == (*lowest[: depth - 1], lowest[depth - 1] + 1)


def test_a_newer_grpclib_may_be_installed_because_the_start_looks_at_its_version() -> None:
    [bound] = wanted("grpclib").specifier
    assert bound.operator == ">="
    assert bound.version.startswith(f"{KNOWN_GRPCLIB}.")
