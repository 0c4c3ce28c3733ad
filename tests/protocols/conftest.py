"""Servers and channels. A server is shared by all tests that want the same settings, and looked at after each."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import grpc
import pytest

from tests.behaviour.approval_tools import POLICY
from tests.server.sockets.conftest import check_no_faults, servers
from tests.server.sockets.process import ServerProcess, Servers

__all__ = ["channel", "check_no_faults", "dial", "server", "servers"]

ASSISTANT = {"AGUI_AGENT": "assistant", "AGUI_TOOLS": "tests.protocols.grpc.tools:tools", "AGUI_TOOL_POLICY": POLICY}


@pytest.fixture
def server(servers: Servers) -> ServerProcess:
    return servers(**ASSISTANT)


PATIENT = [("grpc.min_reconnect_backoff_ms", 120_000)]
"""Options of a client that waits for a busy server. Otherwise it gives up its connection after 20 seconds."""


class Dial(Protocol):
    def __call__(self, server: ServerProcess, **options: Any) -> grpc.Channel: ...


@pytest.fixture
def dial() -> Iterator[Dial]:
    with ExitStack() as stack:

        def dial(server: ServerProcess, **options: Any) -> grpc.Channel:
            channel = grpc.insecure_channel(f"127.0.0.1:{server.port}", **{"options": PATIENT, **options})
            return stack.enter_context(channel)

        yield dial


@pytest.fixture
def channel(server: ServerProcess, dial: Dial) -> grpc.Channel:
    return dial(server)
