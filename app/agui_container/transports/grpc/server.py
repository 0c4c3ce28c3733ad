"""The gRPC server: the construction of its services, and the protocols of its connections.

Rule: this module and all below it are imported by the first HTTP/2 connection (``handover``).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grpclib.const import Handler as Method

from agui_container.engine.service import Service
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


class GrpcServer:
    """Implements ``handover.Http2Server``.

    Args:
        services: all services, including reflection and health.
    """

    def __init__(self, services: Sequence[Servable]) -> None:
        self._methods: dict[str, Method] = {}
        for service in services:
            self._methods.update(service.__mapping__())

    def connect(self, connection: HttpConnection) -> GrpcProtocol:
        """Return the protocol of a connection."""
        return GrpcProtocol(self._methods, connection.connections, connection.limit)


def build_server(service: Service, options: GrpcOptions, protocols: Sequence[BuildServices]) -> GrpcServer:
    """Build the gRPC server of an engine, with the services of these protocols."""
    admission = CallAdmission(options, service.quota, UnverifiedCalls())
    open_options = replace(options, authentication=NO_AUTHENTICATION)
    open_admission = replace(admission, options=open_options, needs_token=False)
    agents = [built for build in protocols for built in build(service, admission)]
    names = [path.split("/")[1] for agent in agents for path in agent.__mapping__()]
    health = HealthService(names, service.is_serving, open_admission)
    return GrpcServer([*with_reflection(agents, open_admission), health])
