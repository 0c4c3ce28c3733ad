"""The run that tests a deployment, through the local AgentCore."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from agui_container.aws.platform.authorizer import InboundAuthorizer, JwtAuthorizer, SigV4Authorizer
from agui_container.cli.command_line import main
from agui_container.settings import Settings
from tests.auth.issuer import TestIssuer
from tests.aws.deploy.account import Account
from tests.aws.platform.doubles import OWN_SERVER, platform_around
from tests.behaviour.server import listening

DATA_PLANE = "AWS_ENDPOINT_URL_BEDROCK_AGENTCORE"

MOTO_KEY = ("FOOBARKEY", "FOOBARSECRET")


@pytest.fixture
async def data_plane(account: type[Account], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    async with platform(SigV4Authorizer(*MOTO_KEY)) as url:
        monkeypatch.setenv(DATA_PLANE, url)
        yield


def platform(authorizer: InboundAuthorizer) -> AbstractAsyncContextManager[str]:
    headers = frozenset({"authorization"} if authorizer.forwards_token else ())
    return platform_around(OWN_SERVER, authorizer, allowed_headers=headers)


async def deploy(*arguments: str) -> int:
    return await asyncio.to_thread(main, ["deploy", "--builder", "codebuild", *arguments])


@pytest.mark.parametrize("suffix", ["", "/runtime-endpoint/prod"])
async def test_a_run_tests_the_deployment_and_the_command_says_how_to_call_that_endpoint(
    project: Path, data_plane: None, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    endpoint = ("--endpoint", "prod") if suffix else ()
    assert await deploy("--prompt", "calculate 2*(3+4)", *endpoint) == 0
    shown = capsys.readouterr()
    assert "It answers: The result of calculate is 14." in shown.err
    arn, _, rest = shown.out.partition(" ")
    assert arn.startswith("arn:")
    assert arn.endswith(suffix)
    assert rest.startswith("version 1 is READY")
    assert commands(shown.out, "agui chat") == [f"agui chat {arn}", f"agui chat --web {arn}"]


def commands(output: str, start: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(start)]


async def test_a_run_that_fails_is_told_with_its_reason(
    project: Path, data_plane: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await deploy("--prompt", "fail") == 2
    assert "it is deployed, but the run that tests it failed: MODEL_" in capsys.readouterr().err


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


async def test_a_runtime_that_asks_for_tokens_is_run_with_the_one_that_is_named(
    project: Path, account: type[Account], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = TestIssuer()
    async with listening(issuer.scripted_app()) as issuer.url:
        ask_for_tokens(project, issuer.discovery_url)
        rules = Settings(auth="jwt", auth_discovery_url=issuer.discovery_url, auth_allowed_clients=("me",))
        async with platform(JwtAuthorizer(rules)) as url:
            monkeypatch.setenv(DATA_PLANE, url)
            assert await deploy("--token", issuer.token("alice", client_id="me")) == 0
            assert "It answers: " in capsys.readouterr().err
            assert await deploy("--token", issuer.token("alice", client_id="you")) == 2
            assert "the run that tests it failed: " in capsys.readouterr().err


def ask_for_tokens(project: Path, discovery_url: str) -> None:
    settings = ('auth = "jwt"', f'auth_discovery_url = "{discovery_url}"', 'auth_allowed_clients = ["me"]')
    (project / "agui.toml").write_text("\n".join(settings))
