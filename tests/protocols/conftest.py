"""A server in another process, shared by all tests that want the same settings, and looked at after each."""

from collections.abc import AsyncIterator

import pytest

from tests.behaviour.approval_tools import POLICY
from tests.protocols.clients import Clients, serving_clients
from tests.server.sockets.conftest import check_no_faults, servers
from tests.server.sockets.process import ServerProcess, Servers

__all__ = ["check_no_faults", "server", "servers"]

ASSISTANT = {"AGUI_AGENT": "assistant", "AGUI_TOOLS": "tests.protocols.grpc.tools:tools", "AGUI_TOOL_POLICY": POLICY}


@pytest.fixture
def server(servers: Servers) -> ServerProcess:
    return servers(**ASSISTANT)


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    """The clients of a server of the test's own, with the assistant."""
    async with serving_clients() as clients:
        yield clients
