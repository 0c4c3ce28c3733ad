"""All gRPC services of one server, wired."""

from app.edge.grpc.call import Admission, Servable
from app.edge.grpc.health import Health
from app.edge.grpc.kontekst.daemon import DaemonService
from app.edge.grpc.kontekst.service import AgentService as KontekstService
from app.edge.grpc.options import GrpcOptions
from app.edge.grpc.reflection import with_reflection
from app.edge.grpc.roz.service import AgentService as RozService
from app.edge.grpc.server import GrpcServer
from app.engine.service import Service


def build_server(service: Service, options: GrpcOptions) -> GrpcServer:
    """The gRPC server of an engine."""
    admission = Admission(options.max_bytes, options.by_session, frozenset(options.origins))
    agents: list[Servable] = [
        RozService(service, admission, options),
        KontekstService(service, admission, options.agent_names),
        DaemonService(options.daemon, admission),
    ]
    names = [path.split("/")[1] for agent in agents for path in agent.__mapping__()]
    return GrpcServer([*with_reflection(agents), Health(names, service.is_serving, admission)])
