"""AWS's CLI, SDK for AgentCore and generated client against the platform, each of which signs in its own way."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect

from agui_container.aws.platform.authorizer import SigV4Authorizer
from agui_container.aws.platform.check import run_input
from tests.aws.platform.doubles import ARN, CONTAINER, SESSION, platform_around
from tests.docs.documents import ROOT
from tests.engine.doubles import Json
from tests.sse import http_client

pytestmark = [
    pytest.mark.wire,
    pytest.mark.packages,
    pytest.mark.filterwarnings("ignore:Support for class-based:DeprecationWarning"),  # of AWS's SDK
]

AWS = ROOT / ".venv" / "aws-cli" / "bin" / "aws"
"""The AWS CLI, version 1, which `make install` installs into an environment of its own."""

SMITHY = ROOT / ".venv" / "smithy" / "bin" / "python"
"""A Python with AWS's generated client, which needs 3.12. `make install` makes it where there is one."""

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}
SESSION_OPTIONS = ("--agent-runtime-arn", ARN, "--runtime-session-id", SESSION)


@pytest.fixture
async def endpoint() -> AsyncIterator[str]:
    """The platform with a container that answers a bad input with 422."""
    command = [sys.executable, str(CONTAINER), "http-errors"]
    async with platform_around(command, SigV4Authorizer("local", "local")) as url:
        yield url


async def aws(endpoint: str, operation: str, *arguments: str) -> tuple[int, str]:
    """Run a command of the AWS CLI; gives its status and what it prints on standard error."""
    command = (str(AWS), "bedrock-agentcore", operation, *SESSION_OPTIONS, "--endpoint-url", endpoint, *arguments)
    environment = {**KEYS, "AWS_MAX_ATTEMPTS": "1", "AWS_CONFIG_FILE": "/nonexistent"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=pipe, stderr=pipe)
    _, error = await process.communicate()
    return process.returncode or 0, error.decode()


def types_in(file: Path) -> list[str]:
    frames = [line.removeprefix("data:") for line in file.read_text().splitlines() if line]
    return [json.loads(frame)["type"] for frame in frames]


async def test_the_aws_cli_invokes_stops_and_shows_errors(endpoint: str, tmp_path: Path) -> None:
    given, answer = tmp_path / "input.json", tmp_path / "events.txt"
    given.write_bytes(run_input("hello"))
    assert await aws(endpoint, "invoke-agent-runtime", "--payload", f"fileb://{given}", str(answer)) == (0, "")
    events = types_in(answer)
    assert (events[0], events[-1]) == ("RUN_STARTED", "RUN_FINISHED")

    given.write_bytes(b"{}")
    assert await aws(endpoint, "invoke-agent-runtime", "--payload", f"fileb://{given}", str(answer)) == (0, "")
    assert types_in(answer) == ["RUN_ERROR"]

    async with http_client(endpoint) as http:
        await http.post("/_platform/next-error", json={"code": "RATE_LIMIT_EXCEEDED"})
    status, error = await aws(endpoint, "invoke-agent-runtime", "--payload", f"fileb://{given}", str(answer))
    assert (status, "ThrottlingException" in error, '"code":"RATE_LIMIT_EXCEEDED"' in error) == (255, True, True)
    assert await aws(endpoint, "stop-runtime-session") == (0, "")


async def test_awss_sdk_for_agentcore_opens_a_socket_with_signed_headers(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK gives all headers of a handshake, which `websockets` sends besides its own."""
    from bedrock_agentcore.runtime import AgentCoreRuntimeClient  # noqa: PLC0415 - a package of the long lane

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    url, headers = AgentCoreRuntimeClient("us-east-1").generate_ws_connection(ARN, session_id=SESSION)
    here = urlsplit(endpoint)
    plain = url.replace("wss:", "ws:", 1)  # only AWS's own host has the certificate
    async with connect(plain, additional_headers=headers, host=here.hostname, port=here.port, proxy=None) as connection:
        await connection.send(run_input("hello").decode())
        events = [json.loads(message)["type"] async for message in connection]
    assert (events[0], events[-1]) == ("RUN_STARTED", "RUN_FINISHED")


@pytest.mark.skipif(not SMITHY.exists(), reason="needs Python 3.12")
async def test_the_generated_client_invokes_stops_and_reads_an_error_as_json(endpoint: str) -> None:
    async def play() -> Json:
        arguments = (endpoint, ARN, SESSION, run_input("hello").decode())
        command = (str(SMITHY), str(Path(__file__).with_name("smithy_client.py")), *arguments)
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        assert process.returncode == 0
        seen: Json = json.loads(output)
        return seen

    seen = await play()
    assert (seen["types"][0], seen["types"][-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert (seen["session"], seen["stopped"]) == (SESSION, 200)
    async with http_client(endpoint) as http:
        await http.post("/_platform/next-error", json={"code": "RATE_LIMIT_EXCEEDED", "count": 3})
    assert (await play())["failure"].startswith("lexical error")
