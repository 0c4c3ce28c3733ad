"""The command: its arguments, their errors, and its exit status."""

import asyncio
import signal
import subprocess
import sys

import httpx
import pytest

from agui_container.aws.platform.authorizer import NoAuthorizer
from agui_container.aws.platform.options import PlatformOptions
from agui_container.aws.platform.rules import RuleFindings
from agui_container.cli import platform as cli
from agui_container.cli.command_line import main
from tests.aws.platform.doubles import CONTAINER, HEADER, INVOCATIONS, SESSION
from tests.ports import free_port

pytestmark = [pytest.mark.wire, pytest.mark.processes]

COMMAND = [sys.executable, "-m", "agui_container", "platform"]
PYTHON_CONTAINER = f"{sys.executable} {CONTAINER}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a:b", "--command", "x"], "Name one of"),
        (["--env", "NAME"], "NAME=VALUE"),
        (["--idle-timeout", "900", "--max-lifetime", "60"], "--max-lifetime"),
        (["--idle-timeout", "-1"], "--idle-timeout"),
        (["--max-lifetime", "0"], "--max-lifetime"),
        (["--path", "runs"], "'runs' must begin with /"),
        (["--command", "python 'server.py"], "No closing quotation"),
        (["check", "--path", "runs"], "'runs' must begin with /"),
        (["--allow-header", "Cookie"], "Cookie is restricted"),
        (["--auth", "jwt"], "AGUI_AUTH_DISCOVERY_URL must be a URL"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["platform", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("host", "url"), [("127.0.0.1", "http://127.0.0.1:8100"), ("::1", "http://[::1]:8100")])
def test_the_address_to_call_is_a_url(host: str, url: str) -> None:
    assert cli.url_of(host, 8100) == url


def test_options_become_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[PlatformOptions] = []

    async def serve_platform(options: PlatformOptions, _: object) -> int:
        found.append(options)
        return 0

    monkeypatch.setattr(cli, "serve_platform", serve_platform)
    runtime = "--auth none --allow-header X-Tenant --idle-timeout 60 --max-lifetime 120 --path /"
    around = "--port 0 --no-freeze"
    assert main(["platform", *runtime.split(), *around.split()]) == 0
    [options] = found
    assert isinstance(options.authorizer, NoAuthorizer)
    assert (options.limits.idle_seconds, options.limits.lifetime_seconds) == (60, 120)
    assert options.allowed_headers == {"x-tenant"}
    assert (options.freezes, options.path) == (False, "/")


def test_a_container_behind_tokens_asks_for_them(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def serve_platform(options: PlatformOptions, _: object) -> int:
        container = options.make_container()
        await container.start()
        await container.wait()
        return 0

    monkeypatch.setattr(cli, "serve_platform", serve_platform)
    monkeypatch.delenv("AGUI_AUTH", raising=False)
    monkeypatch.setenv("AGUI_AUTH_DISCOVERY_URL", "https://issuer.example/.well-known/openid-configuration")
    monkeypatch.setenv("AGUI_AUTH_ALLOWED_AUDIENCE", "my-agent")
    shows = """-c 'import os; print("asks for", os.environ.get("AGUI_AUTH"))'"""
    assert main(["platform", "--auth", "jwt", "--port", "0", "--command", f"{sys.executable} {shows}"]) == 0
    assert "asks for jwt" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("variables", "prompt"), [({}, "wait 1"), ({"AGUI_MODEL": "openai:x"}, "hello"), ({"AGUI_AGENT": "a:b"}, "hello")]
)
def test_the_offline_model_is_checked_with_a_run_that_takes_a_second(
    variables: dict[str, str], prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list[str]()

    async def check_container(*_: object, prompt: str, **__: object) -> RuleFindings:
        found.append(prompt)
        return RuleFindings()

    for name in ("AGUI_AGENT", "AGUI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cli, "check_container", check_container)
    assert main(["platform", "check"]) == 0
    assert main(["platform", "check", "--command", "x"]) == 0
    assert main(["platform", "check", "--prompt", "own"]) == 0
    assert found == [prompt, "hello", "own"]


def test_a_check_prints_its_report_and_fails_for_a_broken_rule() -> None:
    arguments = ["check", "--command", f"{PYTHON_CONTAINER} exits"]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("broken")] == ["start.in-time"]


async def test_the_platform_serves_until_sigterm() -> None:
    port = free_port()
    arguments = ["--auth", "none", "--port", str(port), "--command", PYTHON_CONTAINER]
    process = await asyncio.create_subprocess_exec(*COMMAND, *arguments, stderr=subprocess.PIPE)
    assert process.stderr is not None
    while b"platform listens" not in await process.stderr.readline():
        pass
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http:
        assert (await http.post(INVOCATIONS, content=b"{}", headers={HEADER: SESSION})).status_code == 200
    process.send_signal(signal.SIGTERM)
    _, output = await process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert b"stopped: the platform ends" in output
