"""The shape of the code: import contracts (in ``pyproject.toml``), sizes, and habits that a linter does not know."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("app", "clients/python/src") for path in (ROOT / folder).rglob("*.py"))
MAX_FILE = 400
MAX_FUNCTION = 50
MAY_LOAD_BY_NAME = "app/agui_container/imports.py"
"""The one place that imports what a setting names; such an import escapes the contracts."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """The syntax trees of all files."""
    return {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text()) for file in FILES}


def length(function: Function) -> int:
    """Count its lines, without the docstring."""
    assert function.end_lineno
    whole = function.end_lineno - function.lineno + 1
    first = function.body[0]
    return whole - (len(ast.unparse(first).splitlines()) if ast.get_docstring(function) else 0)


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_imports_point_inwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    # It sets up logging for a process of its own, and would switch off every logger that is there already.
    monkeypatch.setattr("logging.config.dictConfig", lambda _: None)
    assert lint_imports(no_cache=True, no_logo=True) == 0


def test_a_file_can_be_read_in_one_sitting() -> None:
    assert [file for file in FILES if len(file.read_text().splitlines()) > MAX_FILE] == []


def test_a_function_fits_on_a_screen(trees: dict[str, ast.Module]) -> None:
    functions = ((file, node) for file, tree in trees.items() for node in ast.walk(tree) if isinstance(node, Function))
    assert [(file, each.name) for file, each in functions if length(each) > MAX_FUNCTION] == []


def test_a_module_opens_with_its_purpose(trees: dict[str, ast.Module]) -> None:
    assert [file for file, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_imports_are_absolute_and_by_name(trees: dict[str, ast.Module]) -> None:
    names = {(file, name) for file, tree in trees.items() for name in imported(tree)}
    by_name = {(file, name) for file, name in names if name.split(".")[0] == "importlib" and file != MAY_LOAD_BY_NAME}
    assert {(file, name) for file, name in names if name.startswith(".")} == set()
    assert {(file, name) for file, name in by_name if name != "importlib.metadata"} == set()


SHOWS_NAMES = {
    "app/agui_container/__init__.py",
    "app/agui_container/agents/frameworks/server_tools.py",
    "app/agui_container/models/__init__.py",
    "app/agui_container/tools/__init__.py",
    "clients/python/src/agui_client/agentcore.py",
}
"""Public names. The import contracts do not see what they import for type checkers."""


def test_only_public_names_hide_imports_from_the_contracts() -> None:
    hiding = {file.relative_to(ROOT).as_posix() for file in FILES if "TYPE_CHECKING" in file.read_text()}
    assert hiding == SHOWS_NAMES


EMPTY_CONTAINERS = {"{}", "[]", "dict()", "list()", "set()", "bytearray()"}


@pytest.mark.parametrize("folder", ["engine", "protocol", "transports"])
def test_no_module_holds_a_container_that_runs_would_share(folder: str) -> None:
    """An empty container at the top of a module is there to be filled, and then every run fills the same one."""
    found = [
        f"{file.name}:{statement.lineno}"
        for file in (Path(__file__).parents[1] / "app" / "agui_container" / folder).rglob("*.py")
        for statement in ast.parse(file.read_text()).body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and statement.value is not None
        and ast.unparse(statement.value) in EMPTY_CONTAINERS
    ]
    assert found == []
