"""The distribution: its wheel, its dependencies and its public names."""

import ast
import sys
import tomllib
import zipfile
from pathlib import Path

import agui_client
from tests.sockets.process import ROOT

CLIENT = ROOT / "clients" / "python"
MODULES = {
    "ag-ui-protocol": "ag_ui",
    "docstring-parser": "docstring_parser",
    "httpx": "httpx",
    "jsonpatch": "jsonpatch",
    "pydantic": "pydantic",
    "websockets": "websockets",
}
"""The module of each dependency. ``pydantic_core`` comes with pydantic."""


def test_the_wheel_has_the_package_and_its_types(wheels: Path) -> None:
    (wheel,) = wheels.glob("agui_client-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {
        f"agui_client/{path.name}" for path in (CLIENT / "src" / "agui_client").iterdir() if path.is_file()
    } <= names


def test_every_import_is_of_a_declared_dependency() -> None:
    declared = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {name.partition(">")[0] for name in declared} == MODULES.keys()
    imported = {
        name.split(".")[0]
        for path in (CLIENT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    others = imported - sys.stdlib_module_names - {"agui_client", "pydantic_core", "botocore"}
    assert others == set(MODULES.values())


def test_public_names_are_there() -> None:
    assert all(hasattr(agui_client, name) for name in agui_client.__all__)
