"""The public names: pinned, lazy, seen by type checkers, and all that documents and examples import."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import agui_container

ROOT = Path(__file__).parents[2]

PUBLIC = {
    "agui_container": """
        AppError Assistant ContextBudget ErrorCode MessageText Overflow RunContext RunInterrupted SYSTEM_PROMPT Settings
        SettingsError Subagent ToolError __version__ as_agent ask_for_consent create_app langchain_tools load_settings
        project_context pydantic_toolset read_context_files read_skills serve strands_tools system_text tool
    """,
    "agui_container.models": """
        BedrockModel BedrockOptions CachePlace Guardrail OfflineModel OpenAIModel OpenAIOptions RetryPolicy
    """,
    "agui_container.tools": "HttpServer StdioServer ToolPolicy builtin_tools mcp_sources",
    "agui_container.testing": "AgentThread open_thread run_agent user_input",
}
"""All names that users may import. Taking one away breaks their code."""


@pytest.mark.parametrize("module", PUBLIC)
def test_the_public_names_are_these(module: str) -> None:
    assert sorted(importlib.import_module(module).__all__) == sorted(PUBLIC[module].split())


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in PUBLIC for name in PUBLIC[module].split()])
def test_every_public_name_can_be_imported(module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'agui_container' has no attribute 'toool'"):
        agui_container.toool  # type: ignore[attr-defined]  # noqa: B018 - the access is the test


def test_importing_the_package_loads_nothing_but_the_standard_library() -> None:
    code = "import sys; before = set(sys.modules); import agui_container; print(*sys.modules.keys() - before)"
    env = os.environ | {"PYTHONPATH": str(ROOT / "app")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    packages = {name.partition(".")[0] for name in done.stdout.split()}
    assert packages - set(sys.stdlib_module_names) == {"agui_container"}


REVEALED = {
    "tool": "Overload(def",
    "ToolError": "def (*args: object) -> agui_container.ports.tool.ToolError",
    "create_app": "def (agent: object =, settings: ",
    "serve": "def (agent: object =, settings: ",
    "Assistant": "def (model: agui_container.ports.model.Model",
    "BedrockModel": "def (model_id: str",
    "builtin_tools": "def (now: ",
    "run_agent": "def (agent: object, run_input: ",
}
"""The beginning of the type that mypy reveals of a name."""


def type_check(file: Path) -> str:
    """Return mypy's output for a file that imports the package as users do."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", str(file)]
    env = os.environ | {"MYPYPATH": str(ROOT / "app")}
    done = subprocess.run(command, cwd=file.parent, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_type_checkers_see_the_public_names(tmp_path: Path) -> None:
    imports = "".join(
        f"from {module} import {', '.join(name for name in names.split())}\n" for module, names in PUBLIC.items()
    )
    file = tmp_path / "user.py"
    file.write_text(
        imports + "".join(f"reveal_type({name})\n" for name in REVEALED) + "from agui_container import toool\n"
    )
    said = type_check(file)
    for line in REVEALED.values():
        assert f'Revealed type is "{line}' in said, said
    assert 'Module "agui_container" has no attribute "toool"' in said
    assert said.count("error:") == 1, said


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "app" / "agui_container" / "py.typed").exists()


# --- documents and examples -------------------------------------------------------------------------------------------

IMPORT = re.compile(
    r"^\s*(?:from\s+(agui_container[\w.]*)\s+import\s+(\([^)]*\)|.+)|import\s+(agui_container\S*).*)$", re.MULTILINE
)
INSIDE = {ROOT / "docs" / "add-a-protocol.md", ROOT / "examples" / "line_protocol.py"}
"""A protocol is a part of the package, so its guide and its example use names from inside."""

FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]
TEXTS = [file for file in FILES if file not in INSIDE]


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_documents_and_examples_import_public_names_only(file: Path) -> None:
    for module, names, whole in IMPORT.findall(file.read_text()):
        assert (module or whole) in PUBLIC
        imported = {name.partition(" as ")[0] for name in re.split(r"[\s,()]+(?!as\b)", names) if name}
        assert imported <= set(PUBLIC.get(module, "").split()) | {"models", "tools", "testing"}
