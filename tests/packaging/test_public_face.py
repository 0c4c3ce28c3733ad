"""The public names: pinned, lazy, and all that documents and examples import."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PUBLIC = {
    "agui_container": """
        AppError Assistant ContextBudget ErrorCode MessageText Overflow RunContext RunInterrupted SYSTEM_PROMPT Settings
        SettingsError Subagent ToolError __version__ as_agent ask_for_consent create_app langchain_middleware
        langchain_tools load_settings
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
def test_the_public_names_are_these_and_each_can_be_imported(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == sorted(PUBLIC[module].split())
    assert all(getattr(found, name) is not None for name in found.__all__)


def test_importing_the_package_loads_nothing_but_the_standard_library() -> None:
    code = "import sys; before = set(sys.modules); import agui_container; print(*sys.modules.keys() - before)"
    env = os.environ | {"PYTHONPATH": f"{ROOT / 'app'}:{ROOT / 'clients/python/src'}"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    packages = {name.partition(".")[0] for name in done.stdout.split()}
    assert packages - set(sys.stdlib_module_names) == {"agui_container"}
