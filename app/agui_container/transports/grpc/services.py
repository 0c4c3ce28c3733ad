"""Construction of all gRPC services of one server."""

from dataclasses import replace

from agui_container.engine.service import Service
from agui_container.transports.authentication import NO_AUTHENTICATION
from agui_container.transports.bytes_in_flight import ByteBudget
from agui_container.transports.grpc.call import CallAdmission, Servable
from agui_container.transports.grpc.health import HealthService
from agui_container.transports.grpc.kontekst.daemon import DaemonService
from agui_container.transports.grpc.kontekst.service import KontekstService
from agui_container.transports.grpc.options import GrpcOptions
from agui_container.transports.grpc.reflection import with_reflection
from agui_container.transports.grpc.roz.service import RozService
from agui_container.transports.grpc.server import GrpcServer


def build_server(service: Service, options: GrpcOptions, budget: ByteBudget) -> GrpcServer:
    """Build the gRPC server of an engine."""
    admission = CallAdmission(
        options.max_bytes,
        options.by_session,
        frozenset(options.origins),
        options.authentication,
        options.accounts,
        service.usages,
        budget,
    )
    open_admission = replace(admission, authentication=NO_AUTHENTICATION)  # health and reflection need no token
    agents: list[Servable] = [
        RozService(service, admission, options),
        KontekstService(service, admission, options.agent_names),
        DaemonService(options.daemon, admission),
    ]
    names = [path.split("/")[1] for agent in agents for path in agent.__mapping__()]
    health = HealthService(names, service.is_serving, open_admission)
    return GrpcServer([*with_reflection(agents, open_admission), health], options.accounts)
