"""Servers for the commands of the terminal."""

import json
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from tests.cli.terminal import EmulatedTerminal, open_chat
from tests.server.sockets.process import ServerProcess

ASKS = json.dumps([{"tool_pattern": "calculate", "policy": "ask", "reason": "numbers matter"}])


@pytest.fixture(autouse=True)
def stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO())


@pytest.fixture(scope="session")
def scripted() -> Iterator[ServerProcess]:
    with ServerProcess(AGUI_AGENT="tests.cli.terminal_agent:agent") as running:
        yield running


@pytest.fixture(scope="session")
def assistant() -> Iterator[ServerProcess]:
    """A server with the built-in assistant on the offline model. ``calculate`` needs an approval there."""
    with ServerProcess(AGUI_AGENT="assistant", AGUI_TOOL_POLICY=ASKS) as running:
        yield running


@pytest.fixture
def chat(scripted: ServerProcess, tmp_path: Path) -> Iterator[EmulatedTerminal]:
    with open_chat(scripted.invocations, home=tmp_path) as terminal:
        yield terminal
