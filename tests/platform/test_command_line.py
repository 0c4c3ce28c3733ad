"""The command: its arguments, their errors, and its exit status."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agui_container.cli import platform as cli
from agui_container.cli.command_line import main
from agui_container.cli.platform import ContainerTarget, make_authorizer, make_target
from agui_container.platform.authorizer import JwtAuthorizer, NoAuthorizer, SigV4Authorizer
from agui_container.platform.containers import DockerContainer, ProcessContainer
from agui_container.platform.data_plane import PlatformOptions
from agui_container.platform.snapshot import ForkedContainer
from tests.platform.doubles import CONTAINER, HEADER, INVOCATIONS, SESSION
from tests.ports import free_port

COMMAND = [sys.executable, "-m", "agui_container", "platform"]
PYTHON_CONTAINER = f"{sys.executable} {CONTAINER}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a:b", "--image", "x"], "Name one of"),
        (["--command", "x", "--image", "y"], "Name one of"),
        (["--snapshot", "--command", "x"], "--snapshot"),
        (["--env", "NAME"], "NAME=VALUE"),
        (["--time-factor", "0"], "--time-factor"),
        (["--idle-timeout", "900", "--max-lifetime", "60"], "--max-lifetime"),
        (["--allow-header", "Cookie"], "Cookie is restricted"),
        (["--authorizer", "{}"], "customJWTAuthorizer"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["platform", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_both_commands_explain_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["platform", "--help"]) == 0
    assert "--time-factor" in capsys.readouterr().out
    assert main(["platform", "check", "--help"]) == 0
    assert "--junit" in capsys.readouterr().out


def test_options_become_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[PlatformOptions] = []

    async def serve_platform(_: ContainerTarget, options: PlatformOptions, *__: object) -> int:
        found.append(options)
        return 0

    monkeypatch.setattr(cli, "serve_platform", serve_platform)
    runtime = "--auth none --allow-header X-Tenant --idle-timeout 60 --max-lifetime 120 --path /"
    around = "--max-sessions 3 --time-factor 60 --no-freeze --strict"
    assert main(["platform", *runtime.split(), *around.split()]) == 0
    [options] = found
    assert isinstance(options.authorizer, NoAuthorizer)
    assert (options.limits.idle_seconds, options.limits.lifetime_seconds, options.limits.sessions) == (60, 120, 3)
    assert options.allowed_headers == {"x-tenant"}
    assert (options.clock.factor, options.freezes, options.is_strict, options.path) == (60, False, True, "/")


def test_signatures_are_checked_with_the_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    assert isinstance(make_authorizer("sigv4", None), SigV4Authorizer)


def test_an_authorizer_for_tokens_takes_the_place_of_signatures() -> None:
    text = '{"customJWTAuthorizer": {"discoveryUrl": "http://localhost:9/.well-known/openid-configuration"}}'
    assert isinstance(make_authorizer("sigv4", text), JwtAuthorizer)


def test_a_container_is_an_agent_a_command_an_image_or_a_fork() -> None:
    assert isinstance(make_target("a:b", None, None, snapshot=False, env=()).make_container(), ProcessContainer)
    assert isinstance(make_target(None, "x {port}", None, snapshot=False, env=()).make_container(), ProcessContainer)
    assert isinstance(make_target("a:b", None, None, snapshot=True, env=()).make_container(), ForkedContainer)
    image = make_target(None, None, "x", snapshot=False, env=("A=b",)).make_container()
    assert isinstance(image, DockerContainer)
    assert image.run_command()[-3:] == ("--env", "A=b", "x")


def test_a_check_prints_its_report_writes_junit_and_fails_for_a_broken_rule(tmp_path: Path) -> None:
    arguments = [
        "check",
        "--command",
        f"{PYTHON_CONTAINER} exits",
        "--form",
        "json",
        "--junit",
        str(tmp_path / "x.xml"),
    ]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert [rule["rule"] for rule in report["rules"] if rule["state"] == "broken"] == ["start.in-time"]
    assert "<failure" in (tmp_path / "x.xml").read_text()


async def test_the_platform_serves_until_sigterm_and_a_strict_one_tells_which_rule_was_broken() -> None:
    port = free_port()
    arguments = ["--auth", "none", "--port", str(port), "--strict", "--command", f"{PYTHON_CONTAINER} ping-status"]
    process = await asyncio.create_subprocess_exec(*COMMAND, *arguments, stderr=subprocess.PIPE)
    assert process.stderr is not None
    while b"platform listens" not in await process.stderr.readline():
        pass
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http:
        await http.post(INVOCATIONS, content=b"{}", headers={HEADER: SESSION})
        refused = await http.post(INVOCATIONS, content=b"{}", headers={HEADER: SESSION})
        assert refused.status_code == 500
    process.send_signal(signal.SIGTERM)
    _, output = await process.communicate()
    assert process.returncode == 1
    assert b"broken    ping.status" in output
