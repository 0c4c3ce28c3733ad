"""Gives the tests of this folder the official client."""

from collections.abc import Iterator

import pytest

from tests.machine import find_program
from tests.official.conversations import ClientTransport, Protobuf, Sse, WebSocket
from tests.official.judge import Judge
from tests.sockets.process import ServerProcess, serving


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """The official AG-UI client, on Node.js."""
    find_program("node")
    with Judge() as client:
        yield client


@pytest.fixture(scope="session")
def assistant() -> Iterator[ServerProcess]:
    """A server with the built-in assistant on the offline model."""
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def own_agent() -> Iterator[ServerProcess]:
    """A server with the scripted agent of ``agents``."""
    with serving(agent="tests.official.agents:agent") as server:
        yield server


@pytest.fixture(params=[Sse, Protobuf, WebSocket], ids=["sse", "protobuf", "ws"])
def transport(request: pytest.FixtureRequest, judge: Judge, assistant: ServerProcess) -> ClientTransport:
    """A way to ask the assistant."""
    made: ClientTransport = request.param(judge, assistant)
    return made


@pytest.fixture(params=[Sse, Protobuf, WebSocket], ids=["sse", "protobuf", "ws"])
def own_transport(request: pytest.FixtureRequest, judge: Judge, own_agent: ServerProcess) -> ClientTransport:
    """A way to ask the scripted agent."""
    made: ClientTransport = request.param(judge, own_agent)
    return made
