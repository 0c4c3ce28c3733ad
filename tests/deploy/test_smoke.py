"""The run that tests a deployment, through the local AgentCore."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agui_container.cli.command_line import main
from agui_container.platform.application import build_platform
from agui_container.platform.authorizer import SigV4Authorizer
from agui_container.platform.containers import ProcessContainer
from agui_container.platform.data_plane import PlatformOptions
from agui_container.platform.limits import PlatformLimits
from agui_container.platform.serving import serving
from tests.deploy.account import Account
from tests.requirements import requirement

SERVER = [sys.executable, "-W", "error", "-m", "agui_container", "serve"]
MOTO_KEY = ("FOOBARKEY", "FOOBARSECRET")
"""Credentials that moto puts into the environment."""


@pytest.fixture
async def data_plane(account: type[Account], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[None]:
    """The platform with this server as the container, where boto3 looks for AgentCore's data plane."""
    container = {"AGUI_ERROR_STATUS": "stream"}
    options = PlatformOptions(lambda: ProcessContainer(SERVER, container), SigV4Authorizer(*MOTO_KEY))
    async with serving(build_platform(options), PlatformLimits()) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", url)
        yield


async def deploy(*arguments: str) -> int:
    return await asyncio.to_thread(main, ["deploy", "--builder", "codebuild", *arguments])


@requirement("deploy.tested")
async def test_a_run_tests_the_deployment_and_the_command_says_how_to_call_it(
    project: Path, data_plane: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await deploy("--prompt", "calculate 2*(3+4)") == 0
    shown = capsys.readouterr()
    assert "It answers: The result of calculate is 14." in shown.err
    for part in ("agui chat arn:", "curl -N 'https://bedrock-agentcore.eu-central-1.amazonaws.com/", "SyncSession"):
        assert part in shown.out


@requirement("deploy.tested")
async def test_a_run_that_fails_is_told_with_its_reason(
    project: Path, data_plane: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await deploy("--prompt", "fail") == 2
    error = capsys.readouterr().err
    assert "it is deployed, but the run that tests it failed: MODEL_" in error


@requirement("deploy.tested")
async def test_a_runtime_that_asks_for_tokens_is_not_run_without_one(
    project: Path, data_plane: None, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ('auth = "jwt"', 'auth_discovery_url = "https://i.example/.well-known/openid-configuration"')
    (project / "agui.toml").write_text("\n".join((*settings, 'auth_allowed_clients = ["me"]')))
    assert await deploy() == 0
    shown = capsys.readouterr()
    assert "name one with --token" in shown.err
    assert "Authorization: Bearer $TOKEN" in shown.out
