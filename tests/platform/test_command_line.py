"""The command: its arguments, their errors, and its exit status."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agui_container.platform.authorizer import JwtAuthorizer, NoAuthorizer, SigV4Authorizer
from agui_container.platform.command_line import main, make_authorizer, make_factory, parse_arguments, platform_options
from agui_container.platform.containers import DockerContainer, ProcessContainer
from tests.platform.doubles import CONTAINER, HEADER, INVOCATIONS, SESSION
from tests.ports import free_port

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from agui_container.platform.command_line import main; sys.exit(main(sys.argv[1:]))",
]
PYTHON_CONTAINER = f"{sys.executable} {CONTAINER}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a:b", "--image", "x"], "name one of"),
        (["--command", "x", "--image", "y"], "name one of"),
        (["--snapshot", "--command", "x"], "--snapshot"),
        (["--env", "NAME"], "NAME=VALUE"),
        (["--time-factor", "0"], "--time-factor"),
        (["--idle-timeout", "900", "--max-lifetime", "60"], "--max-lifetime"),
        (["--allow-header", "Cookie"], "Cookie is restricted"),
        (["--authorizer", "{}"], "customJWTAuthorizer"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_arguments_become_the_configuration() -> None:
    runtime = "--auth none --allow-header X-Tenant --idle-timeout 60 --max-lifetime 120 --path /"
    around = "--max-sessions 3 --time-factor 60 --no-freeze --strict"
    given = parse_arguments([*runtime.split(), *around.split()])
    options = platform_options(given, make_factory(given, None))
    assert isinstance(options.authorizer, NoAuthorizer)
    assert (options.limits.idle_seconds, options.limits.lifetime_seconds, options.limits.sessions) == (60, 120, 3)
    assert options.allowed_headers == {"x-tenant"}
    assert (options.clock.factor, options.freezes, options.is_strict, options.path) == (60, False, True, "/")


def test_signatures_are_checked_with_the_credentials_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    assert isinstance(make_authorizer(parse_arguments([])), SigV4Authorizer)


def test_an_authorizer_for_tokens_takes_the_place_of_signatures() -> None:
    text = '{"customJWTAuthorizer": {"discoveryUrl": "http://localhost:9/.well-known/openid-configuration"}}'
    assert isinstance(make_authorizer(parse_arguments(["--authorizer", text])), JwtAuthorizer)


def wait_for_port(port: int) -> None:
    """Wait until somebody listens."""
    while True:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return


async def test_a_container_is_an_agent_a_command_or_an_image() -> None:
    assert isinstance(make_factory(parse_arguments(["a:b"]), None)(), ProcessContainer)
    assert isinstance(make_factory(parse_arguments(["--command", "python x.py {port}"]), None)(), ProcessContainer)
    docker = make_factory(parse_arguments(["--image", "x", "--env", "A=b"]), None)()
    assert isinstance(docker, DockerContainer)
    assert docker.run_command()[-3:] == ("--env", "A=b", "x")


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
    while b"platform: http" not in await process.stderr.readline():
        pass
    await asyncio.to_thread(wait_for_port, port)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http:
        await http.post(INVOCATIONS, content=b"{}", headers={HEADER: SESSION})
        refused = await http.post(INVOCATIONS, content=b"{}", headers={HEADER: SESSION})
        assert refused.status_code == 500
    process.send_signal(signal.SIGTERM)
    _, output = await process.communicate()
    assert process.returncode == 1
    assert b"broken    ping.status" in output
