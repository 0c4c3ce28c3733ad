"""Another AgentCore runtime as the agent, played by the local AgentCore, which verifies the signatures."""

from collections.abc import AsyncIterator

import pytest

from agui_container.agents.as_agent import AgentLoadError
from agui_container.agents.loader import load_agent
from agui_container.aws.platform.authorizer import SigV4Authorizer
from agui_container.settings import Settings
from agui_container.testing import open_thread
from tests.aws.platform.doubles import OWN_SERVER, platform_around
from tests.secret_search import planted

ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/agent-0123456789"


@pytest.fixture
async def endpoint() -> AsyncIterator[str]:
    authorizer = SigV4Authorizer("AKIDTEST", planted("aws"))
    async with platform_around(OWN_SERVER, authorizer) as url:
        yield url


@pytest.mark.wire
async def test_a_runtime_answers_over_several_turns_of_a_thread(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", planted("aws"))
    async with open_thread(settings=Settings(agent=ARN)) as thread:
        await thread.send("stream 2")
        assert thread.text == "hello world, hello world, "
        await thread.send("calculate 6*7")
        assert "42" in thread.text


@pytest.mark.parametrize("arn", ["arn:aws:s3:::bucket", ARN.replace("runtime/", "memory/"), "arn:"])
def test_an_arn_of_something_else_is_refused_at_the_start(arn: str) -> None:
    with pytest.raises(AgentLoadError, match="is no ARN of an AgentCore runtime or harness"):
        load_agent(arn)
