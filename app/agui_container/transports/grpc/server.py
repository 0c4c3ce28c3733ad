"""The gRPC server: the construction of its services, and the protocols of its connections.

Rule: this module and all below it are imported by the first HTTP/2 connection (``handover``).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from grpclib.const import Handler as Method

from agui_container.engine.service import Service
from agui_container.telemetry import RefusalLog
from agui_container.transports.authentication import NO_AUTHENTICATION
from agui_container.transports.grpc.call import CallAdmission, Servable
from agui_container.transports.grpc.connection import GrpcProtocol
from agui_container.transports.grpc.handover import HttpConnection
from agui_container.transports.grpc.health import HealthService
from agui_container.transports.grpc.open_calls import UnverifiedCalls
from agui_container.transports.grpc.options import GrpcOptions
from agui_container.transports.grpc.reflection import with_reflection

BuildServices = Callable[[Service, CallAdmission], Sequence[Servable]]
"""Builds the services of a protocol (``transports/registration.py``)."""

MAX_CONNECTIONS = 1_000
"""Number of gRPC connections that one process accepts."""

LIMIT_NAME = "grpcConnections"
"""Name of this limit in metrics and in the log."""


class GrpcConnections:
    """Open gRPC connections. The name of a connection is its transport. Implements ``OpenConnections``.

    Rule: a connection without calls gives way to a new one, the oldest first.
    """

    def __init__(self) -> None:
        self._open: set[asyncio.Transport] = set()
        self._waiting: dict[asyncio.Transport, None] = {}
        self._refusal_log = RefusalLog()

    def admit(self, transport: asyncio.Transport) -> bool:
        """Count a new connection. Returns False if there is no room for it."""
        if len(self._open) >= MAX_CONNECTIONS:
            if (oldest := next(iter(self._waiting), None)) is None:
                self._refusal_log.report(LIMIT_NAME)
                return False
            self.remove(oldest)
            oldest.abort()
        self._open.add(transport)
        return True

    def begin_waiting(self, transport: asyncio.Transport) -> None:
        """Note that a connection has no call."""
        if transport in self._open:
            self._waiting[transport] = None

    def end_waiting(self, transport: asyncio.Transport) -> None:
        """Note that a connection has a call."""
        self._waiting.pop(transport, None)

    def remove(self, transport: asyncio.Transport) -> None:
        """Forget a connection that has ended."""
        self._waiting.pop(transport, None)
        self._open.discard(transport)


class GrpcServer:
    """Implements ``handover.Http2Server``.

    Args:
        services: all services, including reflection and health.
    """

    def __init__(self, services: Sequence[Servable]) -> None:
        self._methods: dict[str, Method] = {}
        for service in services:
            self._methods.update(service.__mapping__())
        self._connections = GrpcConnections()

    def connect(self, connection: HttpConnection) -> GrpcProtocol:
        """Return the protocol of a connection. The connection is closed if there are too many."""
        has_room = self._connections.admit(connection.transport)
        limits = connection.limit, self._connections
        return GrpcProtocol(self._methods, connection.connections, limits, has_room=has_room)


def build_server(service: Service, options: GrpcOptions, protocols: Sequence[BuildServices]) -> GrpcServer:
    """Build the gRPC server of an engine, with the services of these protocols."""
    admission = CallAdmission(options, service.quota, UnverifiedCalls())
    open_options = replace(options, authentication=NO_AUTHENTICATION)
    open_admission = replace(admission, options=open_options, needs_token=False)
    agents = [built for build in protocols for built in build(service, admission)]
    names = [path.split("/")[1] for agent in agents for path in agent.__mapping__()]
    health = HealthService(names, service.is_serving, open_admission)
    return GrpcServer([*with_reflection(agents, open_admission), health])
