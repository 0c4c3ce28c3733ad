"""Extras: parts that a setting chooses. Without its extra a setting stops the start with what to install."""

import subprocess
import sys
from typing import Any

import pytest

from agui_container.imports import EXTRAS
from agui_container.main import create_app
from agui_container.settings import Settings, SettingsError
from tests.engine.doubles import agent_of

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
    "platform": {"aws"},
    "chat": {"cli"},
    "dev": {"cli", "sqlite"},
    "deploy": {"aws", "cli"},
}
"""Extras that the guides name for commands."""


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


def test_a_server_with_default_settings_needs_no_extra_and_warns_of_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for modules in EXTRAS.values():
        for module in modules:
            monkeypatch.setitem(sys.modules, module, None)
    assert create_app(agent_of("a")).state.service.capabilities.custom
    assert create_app().state.service.capabilities.custom
    assert caplog.records == []


@pytest.mark.packages
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
