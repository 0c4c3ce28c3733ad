"""The messages of ``proto/grpc/reflection/v1/reflection.proto``."""

from agui_container.protocols.gen.descriptors import load

globals().update(load("grpc/reflection/v1/reflection.proto"))
