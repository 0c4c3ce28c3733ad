"""The messages of ``proto/grpc/health/v1/health.proto``."""

from agui_container.protocols.gen.descriptors import load

globals().update(load("grpc/health/v1/health.proto"))
