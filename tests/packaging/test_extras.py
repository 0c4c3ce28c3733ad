"""Extras: parts that a setting chooses. Without its extra a setting stops the start with what to install."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agui_container.imports import EXTRAS
from agui_container.main import create_app
from agui_container.settings import Settings, SettingsError
from tests.engine.doubles import agent_of
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
OPTIONAL: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
PACKAGES = {"jwt": "pyjwt"}
"""Names of packages, where a module has another one."""

CHOICES: dict[str, dict[str, Any]] = {
    "aws": {"model": "bedrock:some-model"},
    "jwt": {
        "auth": "jwt",
        "auth_discovery_url": "https://issuer.example/.well-known/openid-configuration",
        "auth_allowed_audience": "me",
    },
    "mcp": {"mcp_servers": '[{"name": "files", "command": "mcp-files"}]'},
    "metrics": {"metrics": True},
    "postgresql": {"store": "postgresql://me@host/agui"},
    "redis": {"bus": "redis://host/0"},
    "sqlite": {"store": "sqlite:///agui.db"},
}
"""Settings that need an extra."""

COMMANDS = {
    "serve": set[str](),
    "doctor": set[str](),
    "platform": {"aws"},
    "chat": {"cli"},
    "dev": {"cli", "sqlite"},
    "deploy": {"aws", "cli"},
    "status": {"aws", "cli"},
    "logs": {"aws", "cli"},
}
"""Extras that the guides name for commands."""


@requirement("start.extras")
@pytest.mark.parametrize("extra", CHOICES)
def test_a_setting_whose_extra_is_missing_stops_the_start_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    module = EXTRAS[extra][-1]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SettingsError) as raised:
        create_app(settings=Settings.model_validate(CHOICES[extra]))
    message = str(raised.value)
    assert f"needs the package {module}. Install it with: pip install 'agui-container[{extra}]'" in message


@requirement("start.extras")
def test_a_server_with_default_settings_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for modules in EXTRAS.values():
        for module in modules:
            monkeypatch.setitem(sys.modules, module, None)
    assert create_app(agent_of("a")).state.service.capabilities.custom
    assert create_app().state.service.capabilities.custom


@requirement("start.extras")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_starts_with_the_extras_that_the_guides_name(command: str) -> None:
    missing = [module for extra in EXTRAS.keys() - COMMANDS[command] for module in EXTRAS[extra]]
    present = [module for extra in COMMANDS[command] for module in EXTRAS[extra]]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted({*missing} - {*present})}))\n"
        f"from agui_container.cli.command_line import main; sys.exit(main(['{command}', '--help']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@requirement("start.extras")
@pytest.mark.parametrize("extra", EXTRAS)
def test_the_modules_of_an_extra_are_those_of_its_packages(extra: str) -> None:
    packages = {canonicalize_name(Requirement(line).name) for line in OPTIONAL[extra]}
    packages.discard("agui-container")  # an extra that brings another one
    assert {canonicalize_name(PACKAGES.get(module, module)) for module in EXTRAS[extra]} == packages
