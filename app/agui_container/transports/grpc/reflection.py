"""Server reflection, v1 and v1alpha, by which clients such as grpcurl list the services.

Source: grpclib's implementation of the standard protocol.
"""

from collections.abc import Sequence

from grpclib.reflection.service import ServerReflection

from agui_container.transports.grpc.call import Servable


def with_reflection(services: Sequence[Servable]) -> Sequence[Servable]:
    """Return the services and the two reflection services that describe them."""
    added: Sequence[Servable] = ServerReflection.extend(list(services))[len(services) :]  # type: ignore[assignment]
    return [*services, *added]
