"""Gives the tests of this folder the official client."""

from collections.abc import Iterator

import pytest

from tests.machine import find_program
from tests.official.conversations import ClientTransport, Sse, WebSocket
from tests.official.judge import Judge
from tests.server.sockets.process import ServerProcess, serving


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    find_program("node")
    with Judge() as client:
        yield client


@pytest.fixture(scope="session")
def assistant() -> Iterator[ServerProcess]:
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def own_agent() -> Iterator[ServerProcess]:
    with serving(agent="tests.official.agents:agent") as server:
        yield server


@pytest.fixture(params=[Sse, WebSocket], ids=["sse", "ws"])
def transport(request: pytest.FixtureRequest, judge: Judge, assistant: ServerProcess) -> ClientTransport:
    made: ClientTransport = request.param(judge, assistant)
    return made


@pytest.fixture(params=[Sse, WebSocket], ids=["sse", "ws"])
def own_transport(request: pytest.FixtureRequest, judge: Judge, own_agent: ServerProcess) -> ClientTransport:
    made: ClientTransport = request.param(judge, own_agent)
    return made
