"""Agents that register standard services in protobuf's default pool, as ``grpc_health`` and ``grpc_reflection`` do."""

from collections.abc import AsyncIterator

from ag_ui.core import RunAgentInput
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto

FILES = {
    "grpc/health/v1/health.proto": ("grpc.health.v1", "HealthCheckRequest"),
    "grpc/reflection/v1/reflection.proto": ("grpc.reflection.v1", "ServerReflectionRequest"),
    "grpc_reflection/v1alpha/reflection.proto": ("grpc.reflection.v1alpha", "ServerReflectionRequest"),
    "roz/agent.proto": ("roz.v1", "SessionRequest"),
}
"""Package and one message of each file. The names of the files are not ours."""


def register() -> None:
    """Register the files. Raises ``TypeError`` if others have registered the messages already."""
    for name, (package, message) in FILES.items():
        file = FileDescriptorProto(name=name, package=package, syntax="proto3")
        file.message_type.add(name=message)
        descriptor_pool.Default().AddSerializedFile(file.SerializeToString())


async def late(_: RunAgentInput) -> AsyncIterator[str]:
    register()
    yield "registered"


def __getattr__(name: str) -> object:
    """Register the files when the agent ``early`` is loaded, which answers as ``late`` does."""
    if name != "early":
        raise AttributeError(name)
    register()
    return _answer


async def _answer(_: RunAgentInput) -> AsyncIterator[str]:
    yield "registered"
