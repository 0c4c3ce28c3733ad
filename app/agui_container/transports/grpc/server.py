"""The gRPC server: its services, and the protocols of its connections.

Rule: this module and all below it are imported by the first HTTP/2 connection (``handover``).
"""

import asyncio
from collections.abc import Sequence

from grpclib.const import Handler as Method

from agui_container.transports.grpc.call import Servable
from agui_container.transports.grpc.connection import GrpcProtocol

MAX_CONNECTIONS = 1_000
"""Number of gRPC connections that one process accepts."""


class GrpcServer:
    """Implements ``handover.Http2Server``.

    Args:
        services: all services, including reflection and health.
    """

    def __init__(self, services: Sequence[Servable]) -> None:
        self._methods: dict[str, Method] = {}
        for service in services:
            self._methods.update(service.__mapping__())

    def connect(self, connections: set[asyncio.Protocol]) -> GrpcProtocol:
        """Return the protocol of a new connection. The connection is closed if there are too many."""
        count = sum(isinstance(connection, GrpcProtocol) for connection in connections)
        return GrpcProtocol(self._methods, connections, has_room=count < MAX_CONNECTIONS)
