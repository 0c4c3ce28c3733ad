"""The gRPC server: the construction of its services, and the protocols of its connections.

Rule: this module and all below it are imported by the first HTTP/2 connection (``handover``).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from grpclib.const import Handler as Method

from agui_container.engine.engine import Engine
from agui_container.protocols.grpc.call import CallAdmission, Servable
from agui_container.protocols.grpc.connection import GrpcProtocol
from agui_container.protocols.grpc.handover import HttpConnection
from agui_container.protocols.grpc.health import HealthService
from agui_container.protocols.grpc.options import GrpcOptions
from agui_container.protocols.grpc.reflection import ReflectionService
from agui_container.web.authentication import NO_AUTHENTICATION

BuildServices = Callable[[Engine, CallAdmission], Sequence[Servable]]
"""Builds the services of a protocol (``web/registration.py``)."""


class GrpcServer:
    """Implements ``handover.Http2Server``. ``services`` include reflection and health."""

    def __init__(self, services: Sequence[Servable]) -> None:
        self._methods: dict[str, Method] = {}
        for service in services:
            self._methods.update(service.__mapping__())

    def connect(self, connection: HttpConnection) -> GrpcProtocol:
        return GrpcProtocol(self._methods, connection)


def build_server(service: Engine, options: GrpcOptions, protocols: Sequence[BuildServices]) -> GrpcServer:
    admission = CallAdmission(options)
    open_admission = CallAdmission(replace(options, authentication=NO_AUTHENTICATION))
    agents = [built for build in protocols for built in build(service, admission)]
    names = list(dict.fromkeys(path.split("/")[1] for agent in agents for path in agent.__mapping__()))
    health = HealthService(names, service.is_serving, open_admission)
    return GrpcServer([*agents, ReflectionService(names, open_admission), health])
