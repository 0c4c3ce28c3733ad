"""The run that tests a deployment, through the local AgentCore."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agui_client import agentcore_url
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
@pytest.mark.parametrize(("endpoint", "suffix"), [("DEFAULT", ""), ("prod", "/runtime-endpoint/prod")])
async def test_a_run_tests_the_deployment_and_the_command_says_how_to_call_that_endpoint(
    project: Path,
    data_plane: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    endpoint: str,
    suffix: str,
) -> None:
    assert await deploy("--prompt", "calculate 2*(3+4)", "--endpoint", endpoint) == 0
    shown = capsys.readouterr()
    monkeypatch.delenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE")
    assert "It answers: The result of calculate is 14." in shown.err
    arn, _, rest = shown.out.partition(" ")
    assert arn.startswith("arn:")
    assert arn.endswith(suffix)
    assert rest.startswith("version 1 is READY")
    assert commands(shown.out, "agui chat") == [f"agui chat {arn}", f"agui chat --web {arn}"]
    assert commands(shown.out, "session = ") == [f'session = SyncSession.start("hello", url=agentcore_url("{arn}"))']
    [curl] = commands(shown.out, "curl")
    assert curl.startswith(f"curl -N '{agentcore_url(arn)}' --aws-sigv4")
    assert commands(shown.out, "# A front end.") != []


def commands(output: str, start: str) -> list[str]:
    """Lines of an output with this start."""
    return [line for line in output.splitlines() if line.startswith(start)]


@requirement("deploy.tested")
async def test_a_run_that_fails_is_told_with_its_reason(
    project: Path, data_plane: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await deploy("--prompt", "fail") == 2
    error = capsys.readouterr().err
    assert "it is deployed, but the run that tests it failed: MODEL_" in error


@requirement("deploy.tested")
async def test_a_runtime_that_asks_for_tokens_is_not_run_without_one(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ('auth = "jwt"', 'auth_discovery_url = "https://i.example/.well-known/openid-configuration"')
    (project / "agui.toml").write_text("\n".join((*settings, 'auth_allowed_clients = ["me"]')))
    assert await deploy("--endpoint", "prod") == 0
    shown = capsys.readouterr()
    assert "name one with --token" in shown.err
    arn = shown.out.partition(" ")[0]
    assert arn.endswith("/runtime-endpoint/prod")
    chats = [f'agui chat {arn} --token "$TOKEN"', f'agui chat --web {arn} --token "$TOKEN"']
    assert commands(shown.out, "agui chat") == chats
    assert f"curl -N '{agentcore_url(arn)}' -H \"Authorization: Bearer $TOKEN\"" in shown.out
    assert f'new ResumableHttpAgent({{ url: "{agentcore_url(arn)}", token,' in shown.out
