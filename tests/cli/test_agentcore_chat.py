"""The chat with a runtime by its ARN: signed requests, through the local AgentCore."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import open_chat
from tests.platform.doubles import ARN
from tests.platform.process import platform_process
from tests.requirements import requirement

CTRL_D = "\x04"


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A local AgentCore around the scripted agent, which the programs of a test find as they find AWS."""
    with platform_process("tests.cli.terminal_agent:agent") as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
        yield


@requirement("terminal.continue")
@pytest.mark.parametrize("transport", [[], ["--ws"]], ids=["sse", "websocket"])
def test_a_chat_continues_with_a_runtime_by_its_arn(platform: None, tmp_path: Path, transport: list[str]) -> None:
    with open_chat(ARN, *transport, home=tmp_path) as terminal:
        terminal.send("hello there\r")
        terminal.wait_for("1 messages, state", "\n>\n")
        terminal.send(CTRL_D)
        assert terminal.wait_for_end() == 0
    with open_chat(ARN, "--continue", *transport, home=tmp_path) as terminal:
        terminal.wait_for("hello there", "1 messages, state")
        terminal.send("and again\r")
        terminal.wait_for("3 messages, state")
