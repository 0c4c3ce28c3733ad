"""boto3 against the platform, as programs use it against AgentCore: only ``endpoint_url`` differs."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest
from boto3.session import Session  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from agui_container.platform.application import build_platform
from agui_container.platform.authorizer import SigV4Authorizer
from agui_container.platform.check import run_input
from agui_container.platform.containers import ProcessContainer
from agui_container.platform.data_plane import PlatformOptions
from agui_container.platform.limits import PlatformLimits
from agui_container.platform.serving import serving
from tests.platform.doubles import ARN, SESSION
from tests.secret_search import planted

OWN_SERVER = [sys.executable, "-W", "error", "-m", "agui_container", "serve"]


@pytest.fixture
async def endpoint() -> AsyncIterator[str]:
    """The platform with this server as the container."""
    authorizer = SigV4Authorizer("AKIDTEST", planted("aws"))
    options = PlatformOptions(lambda: ProcessContainer(OWN_SERVER, {"AGUI_ERROR_STATUS": "stream"}), authorizer)
    async with serving(build_platform(options), PlatformLimits()) as url:
        yield url


def client(endpoint: str, secret: str = planted("aws")) -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
    """A client of AgentCore's data plane."""
    session = Session("AKIDTEST", secret, region_name="eu-central-1")
    config = Config(retries={"total_max_attempts": 1}, proxies={})
    return session.client("bedrock-agentcore", endpoint_url=endpoint, config=config)


def converse(endpoint: str) -> list[dict[str, Any]]:
    """Invoke this server twice in one session, and stop the session; gives the last answer's events."""
    agentcore = client(endpoint)
    thread, found = str(uuid4()), []
    for text in ("hello", 'call calculate {"expression": "2*3"}'):
        body = {**json.loads(run_input(text)), "threadId": thread}
        answered = agentcore.invoke_agent_runtime(
            agentRuntimeArn=ARN,
            qualifier="DEFAULT",
            runtimeSessionId=SESSION,
            contentType="application/json",
            accept="text/event-stream",
            traceParent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            payload=json.dumps(body).encode(),
        )
        assert (answered["statusCode"], answered["contentType"]) == (200, "text/event-stream; charset=utf-8")
        assert answered["runtimeSessionId"] == SESSION
        found = [json.loads(line[5:]) for line in answered["response"].iter_lines() if line.startswith(b"data:")]
    assert agentcore.stop_runtime_session(agentRuntimeArn=ARN, runtimeSessionId=SESSION)["statusCode"] == 200
    return found


async def test_boto3_talks_to_this_server_as_it_does_on_agentcore(endpoint: str) -> None:
    events = await asyncio.to_thread(converse, endpoint)
    assert (events[0]["type"], events[-1]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"] == ["6"]


def failures(endpoint: str) -> list[tuple[str, int]]:
    """The exceptions that boto3 raises, and their statuses."""
    good, unknown = client(endpoint), client(endpoint, planted("other"))
    calls: list[Callable[[], object]] = [
        lambda: unknown.invoke_agent_runtime(agentRuntimeArn=ARN, payload=b"{}"),
        lambda: good.invoke_agent_runtime(agentRuntimeArn="arn:aws:lambda:x", payload=b"{}"),
        lambda: good.get_agent_card(agentRuntimeArn=ARN),
        lambda: good.invoke_agent_runtime_command(agentRuntimeArn=ARN, body={"command": "ls"}),
        lambda: good.stop_runtime_session(agentRuntimeArn=ARN, runtimeSessionId=SESSION),
    ]
    found = []
    for call in calls:
        with pytest.raises(ClientError) as raised:
            call()
        response = raised.value.response
        found.append((response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]))
    return found


async def test_boto3_raises_the_exceptions_of_the_service_model(endpoint: str) -> None:
    assert await asyncio.to_thread(failures, endpoint) == [
        ("AccessDeniedException", 403),
        ("ValidationException", 400),
        ("ValidationException", 400),
        ("ValidationException", 400),
        ("ResourceNotFoundException", 404),
    ]
