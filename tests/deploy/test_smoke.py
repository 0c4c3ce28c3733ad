"""The run that tests a deployment, through the local AgentCore."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agui_client import agentcore_url
from agui_container.cli.command_line import main
from agui_container.platform.application import build_platform
from agui_container.platform.authorizer import InboundAuthorizer, JwtAuthorizer, SigV4Authorizer, parse_configuration
from agui_container.platform.containers import ProcessContainer
from agui_container.platform.data_plane import PlatformOptions
from agui_container.platform.errors import PlatformError, PlatformRefusal
from agui_container.platform.limits import PlatformLimits
from agui_container.platform.serving import serving
from agui_container.platform.sessions import ContainerSessions
from tests.auth.issuer import TestIssuer
from tests.behaviour.server import listening
from tests.deploy.account import Account
from tests.requirements import requirement

SERVER = [sys.executable, "-W", "error", "-m", "agui_container", "serve"]
DATA_PLANE = "AWS_ENDPOINT_URL_BEDROCK_AGENTCORE"
"""Variable for the address of AgentCore's data plane, which boto3 reads."""

MOTO_KEY = ("FOOBARKEY", "FOOBARSECRET")
"""Credentials that moto puts into the environment."""


@pytest.fixture
async def data_plane(account: type[Account], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The platform, whose runtime takes requests that moto's key has signed."""
    async with platform(SigV4Authorizer(*MOTO_KEY)) as url:
        monkeypatch.setenv(DATA_PLANE, url)
        yield


@asynccontextmanager
async def platform(authorizer: InboundAuthorizer) -> AsyncIterator[str]:
    """Serve the platform with this server as the container; gives the URL."""
    container = {"AGUI_ERROR_STATUS": "stream"}
    headers = frozenset({"authorization"} if authorizer.forwards_token else ())
    options = PlatformOptions(lambda: ProcessContainer(SERVER, container), authorizer, allowed_headers=headers)
    async with serving(build_platform(options), PlatformLimits()) as url:
        yield url


async def deploy(*arguments: str) -> int:
    return await asyncio.to_thread(main, ["deploy", "--builder", "codebuild", *arguments])


@requirement("deploy.tested")
@pytest.mark.parametrize("suffix", ["", "/runtime-endpoint/prod"])
async def test_a_run_tests_the_deployment_and_the_command_says_how_to_call_that_endpoint(
    project: Path,
    data_plane: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
) -> None:
    endpoint = ("--endpoint", "prod") if suffix else ()
    assert await deploy("--prompt", "calculate 2*(3+4)", *endpoint) == 0
    shown = capsys.readouterr()
    monkeypatch.delenv(DATA_PLANE)
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
async def test_a_run_that_fails_is_told_with_its_reason_and_its_session_is_ended(
    project: Path, data_plane: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(ContainerSessions, "stop", lambda _, session_id: ended.append(session_id))
    assert await deploy("--prompt", "fail") == 2
    error = capsys.readouterr().err
    assert "it is deployed, but the run that tests it failed: MODEL_" in error
    assert len(ended) == 1


@requirement("deploy.tested")
async def test_a_session_that_the_user_may_not_end_is_no_failure(
    project: Path, data_plane: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def refuse(_: ContainerSessions, session_id: str) -> None:
        refused.append(session_id)
        raise PlatformRefusal(PlatformError.ACCESS_DENIED)

    monkeypatch.setattr(ContainerSessions, "stop", refuse)
    assert await deploy() == 0
    assert len(refused) == 1


@requirement("deploy.tested")
async def test_a_runtime_that_asks_for_tokens_is_not_run_without_one(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str]
) -> None:
    ask_for_tokens(project, "https://i.example/.well-known/openid-configuration")
    assert await deploy("--endpoint", "prod") == 0
    shown = capsys.readouterr()
    assert "name one with --token" in shown.err
    arn = shown.out.partition(" ")[0]
    assert arn.endswith("/runtime-endpoint/prod")
    chats = [f'agui chat {arn} --token "$TOKEN"', f'agui chat --web {arn} --token "$TOKEN"']
    assert commands(shown.out, "agui chat") == chats
    assert f"curl -N '{agentcore_url(arn)}' -H \"Authorization: Bearer $TOKEN\"" in shown.out
    assert f'new ResumableHttpAgent({{ url: "{agentcore_url(arn)}", token,' in shown.out


@requirement("deploy.tested")
async def test_a_runtime_that_asks_for_tokens_is_run_with_the_one_that_is_named(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = TestIssuer()
    async with listening(issuer.scripted_app()) as issuer.url:
        ask_for_tokens(project, issuer.discovery_url)
        rules = {"customJWTAuthorizer": {"discoveryUrl": issuer.discovery_url, "allowedClients": ["me"]}}
        async with platform(JwtAuthorizer(parse_configuration(json.dumps(rules)))) as url:
            monkeypatch.setenv(DATA_PLANE, url)
            assert await deploy("--token", issuer.token("alice", client_id="me")) == 0
            assert "It answers: " in capsys.readouterr().err
            assert await deploy("--token", issuer.token("alice", client_id="you")) == 2
            assert "the run that tests it failed: " in capsys.readouterr().err


def ask_for_tokens(project: Path, discovery_url: str) -> None:
    """Let the agent of a project ask for tokens of one client."""
    settings = ('auth = "jwt"', f'auth_discovery_url = "{discovery_url}"', 'auth_allowed_clients = ["me"]')
    (project / "agui.toml").write_text("\n".join(settings))
