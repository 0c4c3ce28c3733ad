"""Server reflection, v1 and v1alpha: clients such as grpcurl learn the services from the server.

Source: grpclib's implementation of the standard protocol.
"""

from collections.abc import Sequence

from grpclib.reflection.service import ServerReflection

from app.edge.grpc.call import Service


def with_reflection(services: Sequence[Service]) -> Sequence[Service]:
    """The services and the two reflection services, which list them."""
    extended: Sequence[Service] = ServerReflection.extend(list(services))
    return extended
