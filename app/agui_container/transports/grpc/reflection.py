"""Server reflection, v1 and v1alpha: clients such as grpcurl learn the services from the server.

Source: grpclib's implementation of the standard protocol.
"""

from collections.abc import Sequence

from grpclib.reflection.service import ServerReflection

from agui_container.transports.grpc.call import Servable


def with_reflection(services: Sequence[Servable]) -> Sequence[Servable]:
    """The services and the two reflection services, which list them."""
    added: Sequence[Servable] = ServerReflection.extend(list(services))[len(services) :]  # type: ignore[assignment]
    return [*services, *added]
