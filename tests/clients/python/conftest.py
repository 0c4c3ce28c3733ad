"""A server with the built-in assistant on the offline model, reached over both transports."""

import json
from collections.abc import Iterator

import pytest

from tests.server.sockets.process import ServerProcess

ASKS = json.dumps([{"tool_pattern": "current_time", "policy": "ask", "reason": "time is money"}])
TRANSPORTS = ["sse", "websocket"]


def url_of(server: ServerProcess, transport: str) -> str:
    return server.invocations if transport == "sse" else server.ws


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """The server. ``current_time`` needs an approval there."""
    with ServerProcess(AGUI_AGENT="assistant", AGUI_TOOL_POLICY=ASKS) as running:
        yield running


@pytest.fixture(params=TRANSPORTS)
def url(request: pytest.FixtureRequest, server: ServerProcess) -> str:
    return url_of(server, request.param)
